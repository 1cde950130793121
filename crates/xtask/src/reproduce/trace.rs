//! Generates traces of packets: times, flows and sizes, from a seed.
//!
//! The traces of data centres that papers replay may not be distributed. The mix here has their range of sizes, many
//! flows of very unequal lengths, and the arrival times of a Poisson process.

use rng::SplitMix64;

/// Sizes of frames, in bytes without the frame check sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameSizes {
    /// 64 bytes each.
    Smallest,
    /// 45 % of 64 bytes, 35 % of 1,514 bytes, and 20 % of sizes between them: 703 bytes on average.
    Mixed,
}

/// The largest frame: 1,500 bytes after an Ethernet header.
const LARGEST: u64 = 1514;
const SMALLEST: u64 = 64;

/// Parameters of a trace.
#[derive(Clone, Copy, Debug)]
pub struct TraceShape {
    /// Number of packets.
    pub packets: usize,
    /// Number of flows.
    pub flows: usize,
    /// Exponent of the flows' popularity (Zipf); with 0 all are equal.
    pub zipf: f64,
    /// Sizes of the frames.
    pub sizes: FrameSizes,
    /// Mean rate in bits of frames a second.
    pub rate_bps: f64,
    /// Seed of the trace.
    pub seed: u64,
}

/// A packet of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracePacket {
    /// Place in the trace.
    pub number: u32,
    /// Time in nanoseconds since the first packet.
    pub time_ns: u64,
    /// The flow.
    pub flow: u32,
    /// Number of packets of the flow before it.
    pub before: u32,
    /// Bytes of the frame.
    pub size: usize,
    /// A random number, for choices of an application.
    pub random: u64,
}

impl TraceShape {
    /// Generates the packets.
    pub fn packets(&self) -> Vec<TracePacket> {
        let mut random = SplitMix64::new(self.seed);
        let mut popularity = Vec::with_capacity(self.flows);
        let mut sum = 0.0;
        for flow in 1..=self.flows {
            sum += (flow as f64).powf(-self.zipf);
            popularity.push(sum);
        }
        let mut before = vec![0; self.flows];
        let mut time_ns = 0.0;
        let packet = |number| {
            let point = random.fraction() * sum;
            let flow = popularity.partition_point(|end| *end <= point).min(self.flows - 1);
            let size = self.sizes.draw(&mut random);
            let packet = TracePacket {
                number,
                time_ns: time_ns as u64,
                flow: flow as u32,
                before: before[flow],
                size,
                random: random.next_u64(),
            };
            before[flow] += 1;
            let mean_ns = self.sizes.mean() * 8e9 / self.rate_bps;
            time_ns += -(1.0 - random.fraction()).ln() * mean_ns;
            packet
        };
        (0..self.packets as u32).map(packet).collect()
    }
}

impl FrameSizes {
    fn draw(self, random: &mut SplitMix64) -> usize {
        let between = SMALLEST + random.below(LARGEST - SMALLEST + 1);
        let size = match self {
            FrameSizes::Smallest => SMALLEST,
            FrameSizes::Mixed => random.pick(&[(45, SMALLEST), (35, LARGEST), (20, between)]),
        };
        size as usize
    }

    /// Returns the mean size in bytes.
    pub fn mean(self) -> f64 {
        let (smallest, largest) = (SMALLEST as f64, LARGEST as f64);
        match self {
            FrameSizes::Smallest => smallest,
            FrameSizes::Mixed => 0.45 * smallest + 0.35 * largest + 0.2 * (smallest + largest) / 2.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: TraceShape =
        TraceShape { packets: 20_000, flows: 100, zipf: 1.0, sizes: FrameSizes::Mixed, rate_bps: 1e9, seed: 3 };

    #[test]
    fn a_trace_has_the_rate_sizes_and_popularity_of_its_shape() {
        let packets = SHAPE.packets();
        let bytes: usize = packets.iter().map(|packet| packet.size).sum();
        assert!((bytes as f64 / 20_000.0 - FrameSizes::Mixed.mean()).abs() < 15.0, "{bytes}");
        let rate = bytes as f64 * 8e9 / packets.last().expect("there are packets").time_ns as f64;
        assert!((rate / 1e9 - 1.0).abs() < 0.05, "{rate}");
        // The first flow has 1 / H(100) of all packets.
        let first = packets.iter().filter(|packet| packet.flow == 0).count();
        assert!((first as f64 / 20_000.0 - 1.0 / 5.187).abs() < 0.02, "{first}");
        assert!(packets.is_sorted_by_key(|packet| packet.time_ns));
        assert_eq!(packets, SHAPE.packets(), "the seed decides");
    }

    #[test]
    fn packets_of_a_flow_are_counted() {
        let packets = SHAPE.packets();
        let second: Vec<u32> = packets.iter().filter(|packet| packet.flow == 1).map(|packet| packet.before).collect();
        assert!(second.len() > 100);
        assert_eq!(second, (0..second.len() as u32).collect::<Vec<_>>());
    }
}
