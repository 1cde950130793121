//! Counters and aggregates over messages in time.

mod support;

use subscribe::{Layout, Memory, Message, Options, Subscriptions, workload};

struct Feed {
    all: Subscriptions,
    memory: Memory,
    micros: u64,
}

impl Feed {
    fn new(format: subscribe::Format, text: &str) -> Feed {
        let rules = support::rules(text, &format);
        let mut memory = Memory::new(&format);
        let mut all = Subscriptions::new(format.clone(), Layout::sensible(&format, &rules), Options::default());
        memory.assign(&all.change(&[], rules).expect("it fits").slots);
        Feed { all, memory, micros: 0 }
    }

    /// The ports of a message so many microseconds later.
    fn message(&mut self, later: u64, stock: &str, price: u128) -> Vec<u32> {
        self.micros += later;
        let format = self.all.format().clone();
        let mut message = Message::empty(&format);
        let stock = format!("{stock:<8}").bytes().fold(0, |value, byte| value << 8 | u128::from(byte));
        message.set(&format, subscribe::FieldId(1), stock);
        message.set(&format, subscribe::FieldId(2), price);
        self.memory.fill(&format, &mut message, self.micros);
        let delivery = self.all.evaluate(&message);
        assert_eq!(self.all.by_diagram(&message), delivery);
        self.memory.update(&format, &message, &delivery, self.micros);
        delivery.ports
    }
}

#[test]
fn averages_are_over_the_messages_of_the_rest_of_the_rule() {
    let mut feed = Feed::new(workload::itch(), "stock == A and avg(price over 100us) > 50 : fwd(1)");
    assert_eq!(feed.message(0, "A", 60), [], "before the first message there is no average");
    assert_eq!(feed.message(1, "A", 44), [1], "60");
    assert_eq!(feed.message(1, "B", 1), [], "another stock, which does not count either");
    assert_eq!(feed.message(1, "A", 1), [1], "52");
    assert_eq!(feed.message(1, "A", 1), [], "35");
    assert_eq!(feed.message(95, "A", 90), [], "28 up to the 99th microsecond");
    assert_eq!(feed.message(1, "A", 90), [], "a new window");
    assert_eq!(feed.message(1, "A", 90), [1]);
}

#[test]
fn aggregates_are_apart_by_key_and_windows_may_count() {
    let mut feed =
        Feed::new(workload::itch(), "count() by stock over 3 packets >= 2 : fwd(2)\nmin(price) < 5 : fwd(3)");
    let ports: Vec<Vec<u32>> = ["A", "A", "B", "A", "A", "B", "B"].map(|stock| feed.message(1, stock, 9)).into();
    let expected: Vec<Vec<u32>> = vec![vec![], vec![], vec![], vec![2], vec![], vec![], vec![2]];
    assert_eq!(ports, expected, "the third of A ends its window");
    feed.message(1, "C", 3);
    assert_eq!(feed.message(1, "C", 9), [3], "the smallest was 3");
}

#[test]
fn counters_keep_to_their_width_and_window() {
    let mut format = workload::itch();
    let window = Some(subscribe::Window::Micros(10));
    format.counter(subscribe::Counter { name: "volume".to_owned(), width: 8, window }).expect("new");
    let text = "stock == A : volume += price\nvolume >= 200 : fwd(1)\nstock == R : volume <- 7\nvolume == 7 : fwd(2)\n\
                stock == S : volume -= 9";
    let mut feed = Feed::new(format, text);
    assert_eq!(feed.message(0, "A", 199), []);
    assert_eq!(feed.message(1, "A", 199), [], "199");
    assert_eq!(feed.message(1, "A", 1), [1], "255 at most");
    assert_eq!(feed.message(1, "R", 0), [1]);
    assert_eq!(feed.message(1, "S", 0), [2]);
    assert_eq!(feed.message(1, "A", 200), [], "0 at least");
    assert_eq!(feed.message(1, "B", 0), [1]);
    assert_eq!(feed.message(5, "B", 0), [], "the window is over");
}

#[test]
fn rules_that_differ_in_the_bound_share_an_aggregate() {
    let text = "stock == A and avg(price) > 50 : fwd(1)\nstock == A and avg(price) > 60 : fwd(2)\n\
                stock == B and avg(price) > 60 : fwd(3)\nnot (avg(price) > 9) and stock == A : fwd(4)";
    let feed = Feed::new(workload::itch(), text);
    assert_eq!(feed.all.slots().len(), 2);
}
