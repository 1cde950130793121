//! Reads and writes program files as JSON, for tools that move the compiler's output only as JSON or text.
//!
//! ```text
//! {"made_by": "Triplane 0.1.0", "source": "router.p4", "triplane_program": "iVRQTA0KGgoC..."}
//! ```
//!
//! `triplane_program` has the bytes of the program file in base64 (RFC 4648, section 4). The other members are for
//! people. A tool may format the object anew.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::{MAX_FILE_BYTES, ProgramFileError};

/// The name of the member that makes a JSON object a program file.
const MEMBER: &str = "triplane_program";

/// The JSON object.
#[derive(Serialize, Deserialize)]
struct JsonFile {
    #[serde(default)]
    made_by: String,
    #[serde(default)]
    source: String,
    triplane_program: String,
}

/// Whether bytes are meant to be a program file as JSON, damaged or not.
pub(super) fn is_json_form(bytes: &[u8]) -> bool {
    let has_member = || bytes.windows(MEMBER.len()).any(|window| window == MEMBER.as_bytes());
    bytes.trim_ascii_start().starts_with(b"{") && has_member()
}

/// Returns the JSON form of a program file with these bytes.
pub(super) fn emit(made_by: &str, source: &str, bytes: &[u8]) -> Vec<u8> {
    let file = JsonFile {
        made_by: format!("Triplane {made_by}"),
        source: source.to_owned(),
        triplane_program: STANDARD.encode(bytes),
    };
    let mut text = serde_json::to_vec(&file).unwrap_or_default();
    text.push(b'\n');
    text
}

/// Returns the bytes of the program file in a JSON form.
///
/// # Errors
/// If the JSON or the base64 is damaged.
pub(super) fn parse(bytes: &[u8]) -> Result<Vec<u8>, ProgramFileError> {
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(super::ContentError::FileTooLarge.into());
    }
    let file: JsonFile =
        serde_json::from_slice(bytes).map_err(|_| ProgramFileError::Damaged("its JSON is not complete"))?;
    STANDARD.decode(file.triplane_program).map_err(|_| ProgramFileError::Damaged("its base64 is not valid"))
}
