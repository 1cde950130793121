//! Predicts whether packets that read a row of registers write it next.
//!
//! Rows are requested for reading at first, so that switches can share them. A packet that then writes needs a second
//! round trip. If most packets do so, as with a counter, the row is requested for writing at once.

/// Largest value of a counter. Values of at least half of it predict a write.
const MAX_COUNT: u8 = 3;

/// A saturating counter for each group.
#[derive(Debug)]
pub(crate) struct WritePrediction(Vec<u8>);

impl WritePrediction {
    /// Creates a predictor for this number of groups, which predicts reads at first.
    pub fn new(groups: usize) -> WritePrediction {
        WritePrediction(vec![0; groups])
    }

    /// Whether packets that wait for a row of this group will write it.
    pub fn predicts_write(&self, group: u32) -> bool {
        self.0[group as usize] > MAX_COUNT / 2
    }

    /// Records whether the packets that waited for a row have written it, or need to.
    pub fn note(&mut self, group: u32, has_written: bool) {
        let count = &mut self.0[group as usize];
        *count = if has_written { (*count + 1).min(MAX_COUNT) } else { count.saturating_sub(1) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_writes_in_a_row_predict_a_write_and_one_read_does_not_end_it() {
        let mut prediction = WritePrediction::new(2);
        let mut noted = |has_written: &[bool]| {
            has_written.iter().for_each(|it| prediction.note(1, *it));
            (prediction.predicts_write(0), prediction.predicts_write(1))
        };
        assert_eq!(noted(&[true]), (false, false));
        assert_eq!(noted(&[true, true, true, true]), (false, true));
        assert_eq!(noted(&[false]), (false, true));
        assert_eq!(noted(&[false]), (false, false));
    }
}
