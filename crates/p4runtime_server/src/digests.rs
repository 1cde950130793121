//! Digest lists (specification 9.8). Messages are gathered until a list is full or its timeout expires. Duplicates
//! are dropped, and a message that was sent is not sent again until its list is acknowledged or the acknowledgement
//! timeout expires.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;

use bits::Bits;
use p4runtime_proto::v1;
use v1::digest_entry::Config;

use crate::schema::Schema;

/// Maximum number of messages in a list, if its config sets no limit.
const MAX_LIST: usize = 1024;
/// Maximum number of unacknowledged messages of one digest that are remembered. The oldest are forgotten first.
const MAX_UNACKNOWLEDGED: usize = 65_536;

type Values = Arc<Vec<Bits>>;

/// A list that was sent.
#[derive(Debug)]
struct SentList {
    list_id: u64,
    at_ns: u64,
    messages: Vec<Values>,
}

#[derive(Debug, Default)]
struct DigestQueue {
    /// Pending messages in order of arrival, and the time of the first.
    waiting: Vec<Values>,
    since_ns: u64,
    /// Messages that are pending, or sent and not acknowledged.
    known: HashSet<Values>,
    sent: VecDeque<SentList>,
    remembered: usize,
    last_list: u64,
}

/// The digests of a program.
#[derive(Debug, Default)]
pub(crate) struct DigestLists {
    gathering: BTreeMap<u32, DigestQueue>,
}

impl DigestLists {
    /// Adds a message from the switch. Returns a list if one is full.
    pub(crate) fn offer(
        &mut self,
        schema: &Schema,
        id: u32,
        config: &Config,
        values: Vec<Bits>,
        now_ns: u64,
    ) -> Option<v1::DigestList> {
        let gathering = self.gathering.entry(id).or_default();
        gathering.forget(config, now_ns);
        let values = Arc::new(values);
        if !gathering.known.insert(values.clone()) {
            return None;
        }
        if gathering.waiting.is_empty() {
            gathering.since_ns = now_ns;
        }
        gathering.waiting.push(values);
        let full = match usize::try_from(config.max_list_size) {
            Ok(0) | Err(_) => MAX_LIST,
            Ok(size) => size.min(MAX_LIST),
        };
        let now = gathering.waiting.len() >= full || config.max_timeout_ns == 0;
        if now { gathering.send(schema, id, config, now_ns) } else { None }
    }

    /// Returns the lists whose timeout has expired.
    pub(crate) fn due(&mut self, schema: &Schema, configs: &BTreeMap<u32, Config>, now_ns: u64) -> Vec<v1::DigestList> {
        self.gathering.retain(|id, _| configs.contains_key(id));
        let mut lists = Vec::new();
        for (id, gathering) in &mut self.gathering {
            let config = &configs[id];
            gathering.forget(config, now_ns);
            if gathering.due_ns(config).is_some_and(|due| due <= now_ns) {
                lists.extend(gathering.send(schema, *id, config, now_ns));
            }
        }
        lists
    }

    /// Returns the time at which the next list is due.
    pub(crate) fn next_ns(&self, configs: &BTreeMap<u32, Config>) -> Option<u64> {
        let due = |(id, gathering): (&u32, &DigestQueue)| gathering.due_ns(configs.get(id)?);
        self.gathering.iter().filter_map(due).min()
    }

    /// Handles the acknowledgement of a list.
    pub(crate) fn acknowledge(&mut self, id: u32, list_id: u64) {
        let Some(gathering) = self.gathering.get_mut(&id) else { return };
        if let Some(at) = gathering.sent.iter().position(|sent| sent.list_id == list_id)
            && let Some(sent) = gathering.sent.remove(at)
        {
            gathering.drop_sent(&sent);
        }
    }

    /// Forgets all messages, for a new program.
    pub(crate) fn clear(&mut self) {
        self.gathering.clear();
    }
}

impl DigestQueue {
    fn due_ns(&self, config: &Config) -> Option<u64> {
        (!self.waiting.is_empty()).then(|| self.since_ns.saturating_add(config.max_timeout_ns.max(0) as u64))
    }

    /// Forgets lists whose acknowledgement is overdue, so that their messages can be sent again.
    fn forget(&mut self, config: &Config, now_ns: u64) {
        let timeout_ns = config.ack_timeout_ns.max(0) as u64;
        while let Some(first) = self.sent.front()
            && (now_ns.saturating_sub(first.at_ns) >= timeout_ns || self.remembered > MAX_UNACKNOWLEDGED)
            && let Some(sent) = self.sent.pop_front()
        {
            self.drop_sent(&sent);
        }
    }

    fn drop_sent(&mut self, sent: &SentList) {
        self.remembered -= sent.messages.len();
        for message in &sent.messages {
            self.known.remove(message);
        }
    }

    fn send(&mut self, schema: &Schema, id: u32, config: &Config, now_ns: u64) -> Option<v1::DigestList> {
        let ty = schema.digest(id).ok()?.ty.as_ref()?;
        let messages = std::mem::take(&mut self.waiting);
        self.last_list += 1;
        let data = messages.iter().map(|values| ty.print_leaves(values)).collect();
        let list = v1::DigestList { digest_id: id, list_id: self.last_list, data, timestamp: 0 };
        self.remembered += messages.len();
        self.sent.push_back(SentList { list_id: self.last_list, at_ns: now_ns, messages });
        self.forget(config, now_ns);
        Some(list)
    }
}
