//! Translates values in both directions.

use super::{TranslationError, ValueForm, ValueTranslator};
use p4runtime_proto::config::p4_new_type_spec::Representation;
use p4runtime_proto::config::p4_new_type_translation::{SdnString, SdnType};
use p4runtime_proto::config::{P4Info, P4NewTypeSpec, P4NewTypeTranslation, P4TypeInfo};
use p4runtime_proto::v1::field_match::{Exact, FieldMatchType, Lpm, Range, Ternary};

const PORT: &str = "p4.org/psa/v1/PortId_t";

/// `port_t` and `port_in_header_t` are 32-bit numbers of one mapping, `name_t` is a text, `plain_t` is not
/// translated.
fn translator() -> ValueTranslator {
    let spec = |uri: &str, sdn_type| P4NewTypeSpec {
        representation: Some(Representation::TranslatedType(P4NewTypeTranslation {
            uri: uri.to_owned(),
            sdn_type: Some(sdn_type),
        })),
        ..P4NewTypeSpec::default()
    };
    let mut types = P4TypeInfo::default();
    let mut add = |name: &str, spec| types.new_types.insert(name.to_owned(), spec);
    add("port_t", spec(PORT, SdnType::SdnBitwidth(32)));
    add("port_in_header_t", spec(PORT, SdnType::SdnBitwidth(32)));
    add("name_t", spec("example.org/name", SdnType::SdnString(SdnString {})));
    add("plain_t", P4NewTypeSpec::default());
    ValueTranslator::new(&P4Info { type_info: Some(types), ..P4Info::default() })
}

#[test]
fn only_translated_types_are_translated() {
    let mut translator = translator();
    assert_eq!(translator.form("port_t"), Some(ValueForm::Number(32)));
    assert_eq!(translator.form("name_t"), Some(ValueForm::Text));
    assert_eq!(translator.form("plain_t"), None);
    assert_eq!(translator.to_data("plain_t", &[0, 1], 16), Ok(vec![0, 1]));
    assert_eq!(translator.to_sdn("bit", &[0, 1]), [0, 1]);
}

#[test]
fn numbers_stand_for_themselves_unless_they_have_a_pair() {
    let mut translator = translator();
    translator.bind(PORT, &[0xff, 0xff, 0xff, 0xfd], &[1, 0xfe]).unwrap();
    assert_eq!(translator.to_data("port_t", &[0, 0, 0, 7], 9), Ok(vec![7]));
    assert_eq!(translator.to_sdn("port_t", &[0, 7]), [7]);
    // The CPU port, in both types of the mapping.
    assert_eq!(translator.to_data("port_in_header_t", &[0xff, 0xff, 0xff, 0xfd], 16), Ok(vec![1, 0xfe]));
    assert_eq!(translator.to_sdn("port_t", &[1, 0xfe]), [0xff, 0xff, 0xff, 0xfd]);
    let error =
        |translator: &mut ValueTranslator, sdn: &[u8]| translator.to_data("port_t", sdn, 9).unwrap_err().to_string();
    assert_eq!(error(&mut translator, &[2, 0]), "0x0200 maps to itself, but the data plane's type has only 9 bits");
    assert_eq!(
        error(&mut translator, &[1, 0xfe]),
        "0x01fe is not available; its value in the data plane belongs to 0xfffffffd"
    );
    assert_eq!(error(&mut translator, &[1, 0, 0, 0, 0]), "0x0100000000 is not a 32-bit number");
    assert_eq!(error(&mut translator, &[]), "0x is not a 32-bit number");
}

#[test]
fn a_closed_mapping_has_no_other_pairs() {
    let mut translator = translator();
    translator.bind(PORT, &[1, 0], &[3]).unwrap();
    translator.bind("example.org/name", b"eth0", &[1]).unwrap();
    translator.close(PORT);
    translator.close("example.org/name");
    assert_eq!(translator.to_data("port_t", &[0, 1, 0], 9), Ok(vec![3]));
    assert_eq!(translator.to_data("port_t", &[3], 9), Err(TranslationError::Unknown { sdn: "0x03".to_owned() }));
    assert_eq!(translator.to_data("name_t", b"eth0", 9), Ok(vec![1]));
    assert_eq!(
        translator.to_data("name_t", b"eth1", 9).unwrap_err().to_string(),
        "\"eth1\" has no counterpart in this switch"
    );
}

#[test]
fn texts_get_numbers_and_keep_them() {
    let mut translator = translator();
    assert_eq!(translator.to_data("name_t", b"vrf-a", 2), Ok(vec![1]));
    assert_eq!(translator.to_data("name_t", b"2", 2), Ok(vec![2]));
    assert_eq!(translator.to_data("name_t", b"vrf-b", 2), Ok(vec![3]));
    assert_eq!(translator.to_data("name_t", b"vrf-a", 2), Ok(vec![1]));
    assert_eq!(translator.to_data("name_t", b"vrf-c", 2), Err(TranslationError::Exhausted { width: 2 }));
    for (data, sdn) in [(1, "vrf-a"), (2, "2"), (3, "vrf-b"), (0, "0")] {
        assert_eq!(translator.to_sdn("name_t", &[data]), sdn.as_bytes());
    }
    assert_eq!(translator.to_data("name_t", b"", 2), Err(TranslationError::NotAText { sdn: "0x".to_owned() }));
    assert!(translator.to_data("name_t", &[0xff], 2).is_err());
}

#[test]
fn a_text_that_is_a_taken_number_gets_another() {
    let mut translator = translator();
    assert_eq!(translator.to_data("name_t", b"first", 8), Ok(vec![1]));
    assert_eq!(translator.to_data("name_t", b"1", 8), Ok(vec![2]));
    assert_eq!(translator.to_data("name_t", b"007", 8), Ok(vec![3]));
    assert_eq!(translator.to_sdn("name_t", &[2]), b"1");
    assert_eq!(translator.to_sdn("name_t", &[3]), b"007");
}

#[test]
fn a_value_is_in_one_pair_only() {
    let mut translator = translator();
    translator.bind(PORT, &[1], &[5]).unwrap();
    translator.bind(PORT, &[0, 1], &[0, 5]).unwrap();
    assert!(translator.bind(PORT, &[1], &[6]).is_err());
    assert!(translator.bind(PORT, &[2], &[5]).is_err());
    assert_eq!(translator.bind("example.org/unused", &[2], &[5]), Ok(()));
}

#[test]
fn matches_are_on_all_bits_or_none() {
    let mut translator = translator();
    translator.bind(PORT, &[0x12, 0x34], &[5]).unwrap();
    let full = |value: &[u8]| {
        [
            FieldMatchType::Exact(Exact { value: value.to_vec() }),
            FieldMatchType::Ternary(Ternary { value: value.to_vec(), mask: vec![0xff; 4] }),
            FieldMatchType::Lpm(Lpm { value: value.to_vec(), prefix_len: 32 }),
            FieldMatchType::Range(Range { low: value.to_vec(), high: value.to_vec() }),
        ]
    };
    let data = [
        FieldMatchType::Exact(Exact { value: vec![5] }),
        FieldMatchType::Ternary(Ternary { value: vec![5], mask: vec![1, 0xff] }),
        FieldMatchType::Lpm(Lpm { value: vec![5], prefix_len: 9 }),
        FieldMatchType::Range(Range { low: vec![5], high: vec![5] }),
    ];
    for (sdn, data) in full(&[0x12, 0x34]).into_iter().zip(data) {
        let mut field = sdn.clone();
        translator.field_to_data("port_t", &mut field, 9).unwrap();
        assert_eq!(field, data);
        translator.field_to_sdn("port_t", &mut field);
        assert_eq!(field, sdn);
    }
    for some in [
        FieldMatchType::Ternary(Ternary { value: vec![1], mask: vec![1] }),
        FieldMatchType::Lpm(Lpm { value: vec![1], prefix_len: 9 }),
        FieldMatchType::Range(Range { low: vec![1], high: vec![2] }),
    ] {
        let mut field = some.clone();
        assert_eq!(translator.field_to_data("port_t", &mut field, 9), Err(TranslationError::SomeBits));
        assert_eq!(field, some);
    }
    let mut text = FieldMatchType::Ternary(Ternary { value: b"a".to_vec(), mask: vec![0] });
    assert_eq!(translator.field_to_data("name_t", &mut text, 9), Err(TranslationError::SomeBits));
}
