//! Keeps the open orders that later messages can refer to.

use rng::SplitMix64;

/// Maximum number of open orders; beyond it, each new order evicts a random one.
const MOST: usize = 100_000;

/// An open order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    pub number: u64,
    pub stock_locate: u16,
    pub shares: u32,
}

/// The open orders, in no particular order.
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

    /// Removes a random order.
    pub(crate) fn take(&mut self, rng: &mut SplitMix64) -> Option<Order> {
        let at = self.any(rng)?;
        Some(self.orders.swap_remove(at))
    }

    /// Removes a random number of shares from a random order; an order without shares is removed. `whole` permits
    /// removing all shares.
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
