//! Draws raster images (PNG). Letters come from a built-in bitmap font, so no fonts need to be installed.

use std::io;
use std::path::{Path, PathBuf};

use noto_sans_mono_bitmap::{FontWeight, RasterHeight, get_raster, get_raster_width};
use plotters_backend::text_anchor::{HPos, VPos};
use plotters_backend::{BackendColor, BackendCoord, BackendTextStyle, DrawingBackend, DrawingErrorKind};

type Drawn = Result<(), DrawingErrorKind<io::Error>>;

/// An image with one byte each for red, green and blue. It is written to its file when it is presented.
pub struct Picture {
    path: PathBuf,
    size: (u32, u32),
    pixels: Vec<u8>,
}

impl Picture {
    /// Creates a black image.
    pub fn new(path: &Path, size: (u32, u32)) -> Picture {
        Picture { path: path.to_owned(), size, pixels: vec![0; size.0 as usize * size.1 as usize * 3] }
    }

    fn write(&self) -> io::Result<()> {
        let file = io::BufWriter::new(std::fs::File::create(&self.path)?);
        let mut encoder = png::Encoder::new(file, self.size.0, self.size.1);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&self.pixels)?;
        writer.finish()?;
        Ok(())
    }

    /// Blends a colour into a pixel; a pixel outside the image is ignored.
    fn lay(&mut self, (x, y): BackendCoord, rgb: (u8, u8, u8), share: f64) {
        let (Ok(x), Ok(y)) = (usize::try_from(x), usize::try_from(y)) else { return };
        let (width, height) = (self.size.0 as usize, self.size.1 as usize);
        if x >= width || y >= height {
            return;
        }
        let pixel = &mut self.pixels[(y * width + x) * 3..][..3];
        for (below, above) in pixel.iter_mut().zip([rgb.0, rgb.1, rgb.2]) {
            let mixed = f64::from(*below) * (1.0 - share) + f64::from(above) * share;
            *below = mixed.round().clamp(0.0, 255.0) as u8;
        }
    }
}

/// Returns the font height that is nearest to a size.
fn height(size: f64) -> RasterHeight {
    if size < 18.0 { RasterHeight::Size16 } else { RasterHeight::Size20 }
}

/// Returns the width and height of a text in pixels.
fn extent(text: &str, size: f64) -> (i32, i32) {
    let height = height(size);
    let width = get_raster_width(FontWeight::Regular, height) * text.chars().count();
    (width as i32, height.val() as i32)
}

impl DrawingBackend for Picture {
    type ErrorType = io::Error;

    fn get_size(&self) -> (u32, u32) {
        self.size
    }

    fn ensure_prepared(&mut self) -> Drawn {
        Ok(())
    }

    fn present(&mut self) -> Drawn {
        self.write().map_err(DrawingErrorKind::DrawingError)
    }

    fn draw_pixel(&mut self, point: BackendCoord, color: BackendColor) -> Drawn {
        self.lay(point, color.rgb, color.alpha);
        Ok(())
    }

    fn draw_text<S: BackendTextStyle>(&mut self, text: &str, style: &S, at: BackendCoord) -> Drawn {
        let (width, high) = extent(text, style.size());
        let (anchor, transform, color) = (style.anchor(), style.transform(), style.color());
        let left = match anchor.h_pos {
            HPos::Left => 0,
            HPos::Center => -width / 2,
            HPos::Right => -width,
        };
        let top = match anchor.v_pos {
            VPos::Top => 0,
            VPos::Center => -high / 2,
            VPos::Bottom => -high,
        };
        let mut pen = left;
        for letter in text.chars() {
            let drawn = |letter| get_raster(letter, FontWeight::Regular, height(style.size()));
            let Some(letter) = drawn(letter).or_else(|| drawn('?')) else { continue };
            for (y, row) in letter.rows().enumerate() {
                for (x, shade) in row.iter().enumerate().filter(|(_, shade)| **shade > 0) {
                    let (dx, dy) = transform.transform(pen + x as i32, top + y as i32);
                    self.lay((at.0 + dx, at.1 + dy), color.rgb, color.alpha * f64::from(*shade) / 255.0);
                }
            }
            pen += letter.width() as i32;
        }
        Ok(())
    }

    fn estimate_text_size<S: BackendTextStyle>(
        &self,
        text: &str,
        style: &S,
    ) -> Result<(u32, u32), DrawingErrorKind<io::Error>> {
        let (width, height) = extent(text, style.size());
        Ok((width as u32, height as u32))
    }
}
