//! Translates counters, meters and registers, in arrays and with entries (specification 9.3, 9.4, 9.7).

use engine::{CounterValue, MeterConfig};
use p4runtime_proto::v1;

use super::table::ParsedKey;
use super::{EntityTranslator, PlannedUpdate, UpdateKind, parse_key};
use crate::schema::{ArraySchema, TableSchema};
use crate::shadow::ShadowChange;
use crate::status::{Code, Refusal};
use crate::switch_ops::Op;

/// Parses the value of a counter.
pub(super) fn counter_value(data: &v1::CounterData) -> Result<CounterValue, Refusal> {
    match (u64::try_from(data.packet_count), u64::try_from(data.byte_count)) {
        (Ok(packets), Ok(bytes)) => Ok(CounterValue { packets, bytes }),
        _ => Err(Refusal::invalid("counts must be at least 0")),
    }
}

/// Converts the value of a counter to the controller's form.
pub(crate) fn counter_data(value: CounterValue) -> v1::CounterData {
    let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    v1::CounterData { byte_count: number(value.bytes), packet_count: number(value.packets) }
}

/// Parses the configuration of a two-rate three-colour meter.
pub(super) fn meter_config(config: &v1::MeterConfig) -> Result<MeterConfig, Refusal> {
    if config.eburst != 0 {
        return Err(Refusal::invalid("eburst applies only to single-rate meters; leave it 0 for two rates"));
    }
    let number = |name: &str, value: i64| {
        u64::try_from(value).map_err(|_| Refusal::invalid(format!("{name} is {value}; it must be at least 0")))
    };
    let config = MeterConfig {
        cir: number("cir", config.cir)?,
        cbs: number("cburst", config.cburst)?,
        pir: number("pir", config.pir)?,
        pbs: number("pburst", config.pburst)?,
    };
    if config.pir < config.cir {
        Err(Refusal::invalid(format!("pir ({}) is lower than cir ({})", config.pir, config.cir)))
    } else {
        Ok(config)
    }
}

/// Converts a meter's configuration to the controller's form.
pub(crate) fn print_meter(config: MeterConfig) -> v1::MeterConfig {
    let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    v1::MeterConfig {
        cir: number(config.cir),
        cburst: number(config.cbs),
        pir: number(config.pir),
        pburst: number(config.pbs),
        eburst: 0,
    }
}

/// Parses an index into an array; `None` for all elements.
///
/// # Errors
/// `INVALID_ARGUMENT` for a negative index, `OUT_OF_RANGE` for one beyond the end.
pub(crate) fn parse_index<Id>(array: &ArraySchema<Id>, index: Option<&v1::Index>) -> Result<Option<u64>, Refusal> {
    let Some(v1::Index { index }) = index else { return Ok(None) };
    match u64::try_from(*index) {
        Err(_) => Err(Refusal::invalid(format!("{}: index {index} is negative", array.name))),
        Ok(index) if index >= array.size => Err(Refusal::new(
            Code::OutOfRange,
            format!("{}: index {index} is out of range; there are {} elements", array.name, array.size),
        )),
        Ok(index) => Ok(Some(index)),
    }
}

impl EntityTranslator<'_> {
    pub(super) fn counter(&self, kind: UpdateKind, entry: &v1::CounterEntry) -> Result<PlannedUpdate, Refusal> {
        let array = self.schema.counter(entry.counter_id)?;
        let subject = format!("counter {}", array.name);
        kind.must_modify("counters").map_err(|refusal| refusal.about(&subject))?;
        let index = parse_index(array, entry.index.as_ref())?;
        let op = match &entry.data {
            Some(data) => Op::SetCounter(array.ir, index, counter_value(data).map_err(|it| it.about(&subject))?),
            None => Op::Nothing,
        };
        Ok(PlannedUpdate { op, change: ShadowChange::Nothing, subject })
    }

    pub(super) fn meter(&self, kind: UpdateKind, entry: &v1::MeterEntry) -> Result<PlannedUpdate, Refusal> {
        let array = self.schema.meter(entry.meter_id)?;
        let subject = format!("meter {}", array.name);
        let about = |refusal: Refusal| refusal.about(&subject);
        kind.must_modify("meters").map_err(about)?;
        no_colours(entry.counter_data.is_some()).map_err(about)?;
        let index = parse_index(array, entry.index.as_ref())?;
        let config = entry.config.as_ref().map(meter_config).transpose().map_err(about)?;
        let change = ShadowChange::PutMeter { meter: array.id, index, config: entry.config };
        Ok(PlannedUpdate { op: Op::SetMeter(array.ir, index, config), change, subject })
    }

    pub(super) fn register(&self, kind: UpdateKind, entry: &v1::RegisterEntry) -> Result<PlannedUpdate, Refusal> {
        let register = self.schema.register(entry.register_id)?;
        let subject = format!("register {}", register.array.name);
        let about = |refusal: Refusal| refusal.about(&subject);
        kind.must_modify("registers").map_err(about)?;
        let index = parse_index(&register.array, entry.index.as_ref())?;
        let ty = register.ty.as_ref();
        let ty =
            ty.ok_or_else(|| about(Refusal::unimplemented("its elements are of a type that cannot be written")))?;
        let data = entry.data.as_ref().ok_or_else(|| about(Refusal::invalid("data is missing")))?;
        let value = ty.parse(data).map_err(about)?;
        Ok(PlannedUpdate {
            op: Op::SetRegister(register.array.ir, index, value),
            change: ShadowChange::Nothing,
            subject,
        })
    }

    /// Returns the table and the key that a direct counter or meter belongs to.
    fn owner(&self, entry: Option<&v1::TableEntry>) -> Result<(&TableSchema, ParsedKey), Refusal> {
        let entry = entry.ok_or_else(|| Refusal::invalid("table_entry is missing"))?;
        let table = self.schema.table(entry.table_id)?;
        if entry.is_default_action {
            return Err(Refusal::unimplemented(format!(
                "table {}: misses are neither counted nor metered",
                table.name
            )));
        }
        let key = parse_key(table, entry).map_err(|refusal| refusal.about(&format!("table {}", table.name)))?;
        Ok((table, key))
    }

    pub(super) fn direct_counter(
        &self,
        kind: UpdateKind,
        entry: &v1::DirectCounterEntry,
    ) -> Result<PlannedUpdate, Refusal> {
        kind.must_modify("direct counters")?;
        let (table, key) = self.owner(entry.table_entry.as_ref())?;
        let subject = format!("direct counter of table {}", table.name);
        let about = |refusal: Refusal| refusal.about(&subject);
        if table.counter.is_none() {
            return Err(about(Refusal::invalid("the table has no direct counter")));
        }
        let value = entry.data.as_ref().map(counter_value).transpose().map_err(about)?;
        let op = Op::SetEntryCounter { table: table.ir, keys: key.keys, priority: key.priority, value };
        Ok(PlannedUpdate { op, change: ShadowChange::Nothing, subject })
    }

    pub(super) fn direct_meter(
        &self,
        kind: UpdateKind,
        entry: &v1::DirectMeterEntry,
    ) -> Result<PlannedUpdate, Refusal> {
        kind.must_modify("direct meters")?;
        let (table, key) = self.owner(entry.table_entry.as_ref())?;
        let subject = format!("direct meter of table {}", table.name);
        let about = |refusal: Refusal| refusal.about(&subject);
        if table.meter.is_none() {
            return Err(about(Refusal::invalid("the table has no direct meter")));
        }
        no_colours(entry.counter_data.is_some()).map_err(about)?;
        let config = entry.config.as_ref().map(meter_config).transpose().map_err(about)?;
        let change = ShadowChange::EntryMeter { table: table.id, key: key.bytes, config: entry.config };
        let op = Op::SetEntryMeter { table: table.ir, keys: key.keys, priority: key.priority, config };
        Ok(PlannedUpdate { op, change, subject })
    }
}

/// Refuses requests for counts by colour.
///
/// # Errors
/// `UNIMPLEMENTED` if they are requested.
pub(crate) fn no_colours(asked: bool) -> Result<(), Refusal> {
    if asked { Err(Refusal::unimplemented("meters do not count colours; leave counter_data unset")) } else { Ok(()) }
}
