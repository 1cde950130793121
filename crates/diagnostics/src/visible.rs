//! Escapes text from untrusted sources for a terminal.

/// Replaces every character that a terminal would act on instead of showing: control characters become their
/// pictures (`␛` for an escape), and characters that change the text direction become `�`. Line terminators are
/// kept.
pub fn visible(text: &str) -> String {
    let shown = |letter: char| match letter {
        '\n' => letter,
        '\0'..='\x1f' => char::from_u32(0x2400 + u32::from(letter)).unwrap_or('�'),
        '\x7f' => '␡',
        '\u{80}'..='\u{9f}'
        | '\u{61c}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}' => '�',
        _ => letter,
    };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(super::visible("a\x1b[2Jb\r\n\t\u{9b}1m\u{202e}c\x7f é\u{61c}"), "a␛[2Jb␍\n␉�1m�c␡ é�");
    }
}
