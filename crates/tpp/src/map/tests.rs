use super::*;

fn program() -> MemoryMap {
    let register = |name: &str, width, size| RegisterShape { name: name.to_owned(), width, size };
    let registers = [
        register("MyIngress.limits", 32, 16),
        register("MyIngress.totals", 64, 8),
        register("MyIngress.large", 48, 100_000),
    ];
    let field = |name: &str, width| FieldShape { name: name.to_owned(), width };
    MemoryMap::with_program(registers, [field("hdr.ipv4.ttl", 8), field("hdr.ipv4.dstAddr", 32)])
}

#[test]
fn every_row_is_found_by_each_of_its_names_and_by_its_address() {
    let map = MemoryMap::new();
    for row in ROWS {
        let stage = if row.namespace.has_stage() { "7" } else { "" };
        for name in row.names() {
            let element = if row.count > 1 { "_3" } else { "" };
            let name = format!("{}{stage}:{name}{element}", row.namespace.name());
            let entry = map.find(&name).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(map.locate(entry.address), Some(entry.clone()), "{name}");
            assert_eq!(entry.width, row.width);
            let high = map.find(&format!("{name}.High")).unwrap();
            assert_eq!((high.address, high.is_high()), (entry.address + 1, true));
            assert_eq!(map.locate(high.address), Some(high));
        }
    }
}

#[test]
fn rows_do_not_overlap_and_are_in_order() {
    for pair in ROWS.windows(2) {
        assert!(pair[0].address() + 2 * pair[0].count <= pair[1].address(), "{} {}", pair[0].name, pair[1].name);
    }
    for row in ROWS {
        assert!(row.offset % 2 == 0 && [16, 32, 64].contains(&row.width), "{}", row.name);
        assert!(!row.namespace.has_stage() || u32::from(row.offset) < STRIDE, "{}", row.name);
        assert!(row.access == Access::Read || row.width == 32, "{}: only words are written", row.name);
        assert!(
            row.int.is_none_or(|int| INT_FIELDS.iter().any(|field| (field.bit, field.name) == int)),
            "{}",
            row.name
        );
    }
}

#[test]
fn the_names_of_the_paper_are_known() {
    let map = MemoryMap::new();
    let names = [
        "Switch:SwitchID",
        "Switch:ID",
        "Switch:VendorID",
        "Link:QueueSize",
        "Link:RX-Utilization",
        "Link:TX-Utilization",
        "Link:TX-Bytes",
        "Link:RX-Bytes",
        "Link:ID",
        "Link:AppSpecific_0",
        "Queue:QueueOccupancy",
        "PacketMetadata:MatchedEntryID",
        "PacketMetadata:InputPort",
        "PacketMetadata:OutputPort",
    ];
    for name in names {
        map.find(name).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    assert_eq!(map.find("Queue:QueueOccupancy").unwrap().address, 0xb000, "the number of section 2");
    assert_eq!(map.find("link:tx_bytes").unwrap().name, "Link:TX-Bytes");
    assert_eq!(map.find("Stage$1:Version"), map.find("Stage1:VersionNumber"));
}

#[test]
fn other_ports_and_registers_have_indirect_addresses() {
    let map = program();
    let expect = |name: &str, address: u32| {
        let entry = map.find(name).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(entry.address, address, "{name}");
        assert_eq!(map.locate(address), Some(entry), "{name}");
    };
    expect("Link$3:TX-Bytes", 0x1003_3012);
    expect("Queue$511$7:QueueOccupancy", 0x11ff_b1c0);
    expect("Register:MyIngress.limits[15]", 0x801e);
    expect("Register:MyIngress.totals[7].High", 0x802f);
    expect("Register:MyIngress.large[99999]", 0x2020_0000 | 199_998);
    expect("Field:hdr.ipv4.dstAddr", 0xc002);
    expect("Vendor:0x10", 0xf010);
    expect("Vendor:0xf0001234", 0xf000_1234);
    assert_eq!(map.find("Register:limits[3]").unwrap().name, "Register:MyIngress.limits[3]");
    let access = |name: &str| map.find(name).unwrap().access;
    assert_eq!(access("Register:limits"), Access::ReadWrite);
    assert_eq!((access("Register:totals"), access("Link$3:AppSpecific_0")), (Access::Read, Access::Read));
}

#[test]
fn wrong_names_have_remedies() {
    let map = program();
    let said = |name: &str| {
        let error = map.find(name).unwrap_err();
        format!("{error}; {}", error.help().unwrap_or_default())
    };
    assert_eq!(
        said("Queue:QueueOcupancy"),
        "`Queue` has no statistic `QueueOcupancy`; did you mean `Queue:QueueOccupancy`?"
    );
    assert_eq!(said("Swich:ID"), "there is no namespace `Swich`; did you mean `Switch`?");
    assert_eq!(
        said("Link:AppSpecific"),
        "`Link` has no statistic `AppSpecific`; `triplane tpp map Link` lists the names"
    );
    assert_eq!(said("Stage:Version"), "`Stage` does not take these numbers; name the table by its number: `Stage0:…`");
    assert_eq!(said("Stage64:Version"), "the highest number of a table is 63; ");
    assert_eq!(
        said("Register:limit[1]"),
        "the program has no register `limit`; did you mean `Register:MyIngress.limits[0]`?"
    );
    assert_eq!(said("Register:limits[16]"), "the highest element of this register is 15; ");
    assert!(said("TX-Bytes").contains("`Namespace:Statistic`"));
    assert!(map.locate(0x0fff_0000).is_none() && map.locate(0x5000_0000).is_none() && map.locate(0x3100).is_none());
}

#[test]
fn int_metadata_has_its_rows() {
    let names = |bitmap| -> Vec<_> {
        int_sources(bitmap).map(|source| (source.field.name, source.row.map(|row| row.name))).collect()
    };
    assert_eq!(
        names(0b1101_0000_0000_0000),
        [
            ("Node ID", Some("ID")),
            ("Ingress interface ID", Some("InputPort")),
            ("Egress interface ID", Some("OutputPort")),
            ("Queue ID", Some("QueueID")),
            ("Queue occupancy", Some("QueueOccupancy")),
        ]
    );
    assert_eq!(names(0b10_0000_0000), [("Level 2 ingress interface ID", None), ("Level 2 egress interface ID", None)]);
    assert_eq!(int_sources(u16::MAX).count(), INT_FIELDS.len());
}

#[test]
fn names_of_the_program_may_end_as_high_halves_do_and_arrays_may_be_empty() {
    let register = |name: &str, size| RegisterShape { name: name.to_owned(), width: 48, size };
    let field = |name: &str| FieldShape { name: name.to_owned(), width: 48 };
    let map = MemoryMap::with_program(
        [register("C.empty", 0), register("C.high", 2), register("C", 2), register("C.last", 0)],
        [field("hdr.mac"), field("hdr.mac.High")],
    );
    let name = |text: &str| map.find(text).map(|entry| entry.name);
    for text in ["Register:C.high", "Register:C.high[0]", "Register:high"] {
        assert_eq!(name(text).as_deref(), Ok("Register:C.high[0]"), "{text}");
    }
    assert_eq!(name("Register:C.high.High").as_deref(), Ok("Register:C.high[0].High"));
    assert_eq!(name("Register:C.high[1].High").as_deref(), Ok("Register:C.high[1].High"));
    assert_eq!(name("Register:C[1].High").as_deref(), Ok("Register:C[1].High"));
    assert_eq!(name("Field:hdr.mac.High").as_deref(), Ok("Field:hdr.mac.High"));
    assert_eq!(name("Field:hdr.mac.High.High").as_deref(), Ok("Field:hdr.mac.High.High"));
    // Empty arrays take no addresses, and no message speaks of their elements.
    let addresses = [0x8000, 0x8002, 0x8004, 0x8006, 0x8008].map(|address| map.register_at(address));
    assert_eq!(addresses, [Some((1, 0)), Some((1, 1)), Some((2, 0)), Some((2, 1)), None]);
    assert_eq!(map.find("Register:C.empty[0]").unwrap_err().to_string(), "the register `C.empty` has no elements");
}

#[test]
fn the_number_of_a_map_depends_on_all_that_addresses_depend_on() {
    let number = |shapes: &[(&str, u32, u32)]| {
        let shape = |(name, width, size): &(&str, u32, u32)| RegisterShape {
            name: (*name).to_owned(),
            width: *width,
            size: *size,
        };
        MemoryMap::with_program(shapes.iter().map(shape), []).register_map()
    };
    let maps: [&[(&str, u32, u32)]; 6] = [
        &[("a", 8, 2), ("b", 8, 2)],
        &[("b", 8, 2), ("a", 8, 2)],
        &[("a", 9, 2), ("b", 8, 2)],
        &[("a", 8, 3), ("b", 8, 2)],
        &[("a", 8, 2), ("b", 8, 2), ("c", 8, 0)],
        &[],
    ];
    let numbers: std::collections::BTreeSet<u32> = maps.into_iter().map(number).collect();
    assert_eq!(numbers.len(), maps.len());
    assert_eq!(number(&[]), MemoryMap::new().register_map());
}
