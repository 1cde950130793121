//! The orders that are open: what later messages can be about.

use rng::SplitMix64;

/// Open orders that are remembered at most; beyond, one leaves for each that comes.
const MOST: usize = 100_000;

/// An open order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    pub number: u64,
    pub stock_locate: u16,
    pub shares: u32,
}

/// The open orders, in no order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Book {
    orders: Vec<Order>,
}

impl Book {
    pub(crate) fn add(&mut self, order: Order, rng: &mut SplitMix64) {
        if self.orders.len() == MOST {
            self.take(rng);
        }
        self.orders.push(order);
    }

    /// Removes one at random.
    pub(crate) fn take(&mut self, rng: &mut SplitMix64) -> Option<Order> {
        let at = self.any(rng)?;
        Some(self.orders.swap_remove(at))
    }

    /// Takes a random part of the shares of one at random, which leaves when none are left. `whole` says whether all may go.
    pub(crate) fn reduce(&mut self, whole: bool, rng: &mut SplitMix64) -> Option<(Order, u32)> {
        let at = self.any(rng)?;
        let order = self.orders[at];
        let most = if whole { order.shares } else { order.shares - 1 };
        if most == 0 {
            return None;
        }
        let taken = 1 + rng.below(most.into()) as u32;
        self.orders[at].shares -= taken;
        if self.orders[at].shares == 0 {
            self.orders.swap_remove(at);
        }
        Some((order, taken))
    }

    fn any(&self, rng: &mut SplitMix64) -> Option<usize> {
        (!self.orders.is_empty()).then(|| rng.below(self.orders.len() as u64) as usize)
    }
}
