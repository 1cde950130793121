//! Computes the positions of a key's fields in its packed words.

/// The match kind of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldKind {
    /// The whole value.
    Exact,
    /// A prefix.
    Prefix,
    /// A value under a mask; optional fields (exact or anything) use it too.
    Masked,
    /// From a lowest to a highest value, both included.
    Range,
}

/// A field of a packed key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyField {
    /// Width in bits; a field of width 0 takes no space.
    pub width: u32,
    /// Match kind of the field's entries.
    pub kind: FieldKind,
    /// Index of the word with the field's lowest bit.
    pub word: usize,
    /// Position of the lowest bit in that word. A field of up to 64 bits lies in one word; a wider one begins at bit 0
    /// and continues in the following words, lowest bits first.
    pub shift: u32,
}

impl KeyField {
    /// Returns the number of words that hold a part of the field.
    pub fn words(&self) -> usize {
        self.width.div_ceil(64) as usize
    }

    /// Returns the mask of the field's bits in its `part`-th word, without the shift.
    pub fn ones(&self, part: usize) -> u64 {
        let bits = self.width.saturating_sub(64 * part as u32).min(64);
        low_ones(bits)
    }
}

/// Returns `bits` ones (0 to 64) at the low end.
pub(crate) fn low_ones(bits: u32) -> u64 {
    if bits == 0 { 0 } else { u64::MAX >> (64 - bits) }
}

/// The packing of a key: fields one after the other from the low end of the first word. A field of up to 64 bits that
/// would cross the end of a word goes to the next word; a wider field begins a word. Bits between fields are 0 in
/// every key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyLayout {
    fields: Vec<KeyField>,
    words: usize,
}

impl KeyLayout {
    /// Lays out fields of these widths and kinds.
    pub fn new(fields: impl IntoIterator<Item = (u32, FieldKind)>) -> Self {
        let mut next_bit = 0usize;
        let place = |(width, kind): (u32, FieldKind)| {
            let in_word = next_bit % 64;
            let crosses = in_word + width as usize > 64;
            if crosses {
                next_bit = next_bit.next_multiple_of(64);
            }
            let field = KeyField { width, kind, word: next_bit / 64, shift: (next_bit % 64) as u32 };
            next_bit += width as usize;
            field
        };
        let fields: Vec<_> = fields.into_iter().map(place).collect();
        KeyLayout { fields, words: next_bit.div_ceil(64) }
    }

    /// Returns the fields in order.
    pub fn fields(&self) -> &[KeyField] {
        &self.fields
    }

    /// Returns the number of words of a key.
    pub fn words(&self) -> usize {
        self.words
    }

    /// Stores a field's value, low word first, in a key whose bits there are 0. Missing words of the value count as 0,
    /// and bits beyond the field's width are ignored.
    pub fn put(&self, key: &mut [u64], field: usize, value: &[u64]) {
        let at = &self.fields[field];
        for (part, word) in value.iter().take(at.words()).enumerate() {
            key[at.word + part] |= (word & at.ones(part)) << at.shift;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_do_not_cross_words_unless_they_are_wide() {
        let place = |widths: &[u32]| {
            let layout = KeyLayout::new(widths.iter().map(|width| (*width, FieldKind::Exact)));
            let at: Vec<_> = layout.fields().iter().map(|field| (field.word, field.shift)).collect();
            (at, layout.words())
        };
        assert_eq!(place(&[]), (vec![], 0));
        assert_eq!(place(&[0]), (vec![(0, 0)], 0));
        assert_eq!(place(&[32, 32, 16, 16, 8]), (vec![(0, 0), (0, 32), (1, 0), (1, 16), (1, 32)], 2));
        assert_eq!(place(&[48, 32]), (vec![(0, 0), (1, 0)], 2));
        assert_eq!(place(&[9, 128, 9]), (vec![(0, 0), (1, 0), (3, 0)], 4));
        assert_eq!(place(&[100, 20]), (vec![(0, 0), (1, 36)], 2));
    }

    #[test]
    fn values_land_in_their_bits() {
        let layout = KeyLayout::new([(9, FieldKind::Exact), (70, FieldKind::Exact), (10, FieldKind::Exact)]);
        let mut key = vec![0; layout.words()];
        layout.put(&mut key, 0, &[u64::MAX]);
        layout.put(&mut key, 1, &[5, u64::MAX]);
        layout.put(&mut key, 2, &[0x3ff]);
        assert_eq!(key, [0x1ff, 5, 0x3f | 0x3ff << 6]);
    }
}
