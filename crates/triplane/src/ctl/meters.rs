//! Lists meters and their rates.

use p4runtime_proto::v1::entity::Entity as Kind;
use p4runtime_proto::v1::{self, MeterConfig};
use serde_json::json;

use super::{SwitchConnection, names, show};
use crate::output::Failure;

impl SwitchConnection<'_> {
    /// `meters`
    pub fn meters(&self, wanted: Option<&str>) -> Result<(), Failure> {
        let tables = names::tables(&self.info);
        let mut all: Vec<(Kind, &str)> = Vec::new();
        for meter in &self.info.meters {
            let entry = v1::MeterEntry { meter_id: names::id(&meter.preamble), ..Default::default() };
            all.push((Kind::MeterEntry(entry), names::name(&meter.preamble)));
        }
        for meter in &self.info.direct_meters {
            let table_entry = v1::TableEntry { table_id: meter.direct_table_id, ..Default::default() };
            let entry = v1::DirectMeterEntry { table_entry: Some(table_entry), ..Default::default() };
            all.push((Kind::DirectMeterEntry(entry), names::name(&meter.preamble)));
        }
        let named: Vec<_> = all.iter().enumerate().map(|(at, (_, name))| (at, *name)).collect();
        // A direct meter can be named by its table as well.
        let of_tables = all.iter().enumerate().filter_map(|(at, (kind, _))| match kind {
            Kind::DirectMeterEntry(entry) => {
                let id = entry.table_entry.as_ref().map_or(0, |entry| entry.table_id);
                let (_, name) = tables.iter().find(|(table, _)| names::id(&table.preamble) == id)?;
                Some((at, *name))
            }
            _ => None,
        });
        let named: Vec<_> = named.into_iter().chain(of_tables).collect();
        let only = wanted.map(|wanted| names::look_up("meter", wanted, &named)).transpose()?;
        let (mut lines, mut objects) = (String::new(), Vec::new());
        for (kind, name) in
            all.iter().enumerate().filter(|(at, _)| only.is_none_or(|only| only == *at)).map(|(_, it)| it)
        {
            self.read_object(vec![kind.clone()], wanted.is_none(), |entity| {
                let (place, config) = match entity {
                    Kind::MeterEntry(entry) => {
                        (entry.index.map_or(String::new(), |index| index.index.to_string()), entry.config)
                    }
                    Kind::DirectMeterEntry(v1::DirectMeterEntry { table_entry: Some(entry), config, .. }) => {
                        let table = tables.iter().find(|(table, _)| names::id(&table.preamble) == entry.table_id);
                        (table.map(|(table, _)| show::key(table, &entry)).unwrap_or_default(), config)
                    }
                    _ => return Ok(()),
                };
                if let Some(config) = config {
                    lines += &format!("{name}[{place}]  {}\n", shown(&config));
                    objects.push(json!({ "meter": name, "of": place, "cir": config.cir, "cburst": config.cburst,
                        "pir": config.pir, "pburst": config.pburst }));
                }
                Ok(())
            })?;
        }
        if self.json {
            return self.print_json(&objects.into());
        }
        if lines.is_empty() && self.denied.get() == 0 {
            self.output.note(if all.is_empty() {
                "the program has no meters"
            } else {
                "no meter has rates configured: all packets are green"
            });
        }
        self.output.print(&lines)
    }
}

/// Formats rates per second, in the meter's unit: `cir=1000 cburst=100 pir=2000 pburst=200`.
pub fn shown(config: &MeterConfig) -> String {
    let MeterConfig { cir, cburst, pir, pburst, .. } = config;
    format!("cir={cir} cburst={cburst} pir={pir} pburst={pburst}")
}
