//! The control law: the window of a flow, from the utilization of the busiest link on its path.

/// Parameters of a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HpccSettings {
    /// Utilization of a link that flows aim at (η), less than 1. The rest is for additive increases.
    pub target: f64,
    /// Maximum number of consecutive additive increases. After them, the window is adjusted to the utilization again.
    pub max_stage: u32,
    /// Number of flows on a link whose additive increases are, together, what the target leaves of the capacity. More
    /// flows cause a queue that remains.
    pub max_flows: u32,
}

impl HpccSettings {
    /// The usual target.
    pub const TARGET: f64 = 0.95;

    /// Returns the usual parameters for a target: at most five additive increases, and 16 flows.
    pub fn new(target: f64) -> HpccSettings {
        HpccSettings { target, max_stage: 5, max_flows: 16 }
    }

    /// Returns the utilization of a link at which the windows of `flows` flows remain as they are: W = W η / U + A,
    /// summed over the flows.
    pub fn utilization_of(&self, flows: u32) -> f64 {
        self.target + (1.0 - self.target) * f64::from(flows) / f64::from(self.max_flows.max(1))
    }
}

/// The window of a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowLaw {
    settings: HpccSettings,
    /// Maximum window in bytes: what the path holds without queues.
    max_window: f64,
    /// The window in bytes.
    window: f64,
    /// The window of the latest update, from which all windows of the round trip are computed.
    reference: f64,
    /// Smoothed utilization of the busiest link: 1 is a link that is full and has no queue.
    utilization: f64,
    /// Additive increases since the latest adjustment.
    stage: u32,
}

impl WindowLaw {
    /// Creates the window of a new flow, on a path that holds this number of bytes.
    pub fn new(settings: HpccSettings, bandwidth_delay: f64) -> WindowLaw {
        let max_window = bandwidth_delay.max(0.0);
        WindowLaw { settings, max_window, window: max_window, reference: max_window, utilization: 1.0, stage: 0 }
    }

    /// Returns the window in bytes.
    pub fn window(&self) -> f64 {
        self.window
    }

    /// Returns the smoothed utilization of the busiest link.
    pub fn utilization(&self) -> f64 {
        self.utilization
    }

    /// Returns the additive increase, which is also the least window, in bytes.
    fn increase(&self) -> f64 {
        self.max_window * (1.0 - self.settings.target) / f64::from(self.settings.max_flows.max(1))
    }

    fn limited(&self, window: f64) -> f64 {
        window.min(self.max_window).max(self.increase())
    }

    /// Sets the bytes that the path holds.
    pub fn resize(&mut self, bandwidth_delay: f64) {
        self.max_window = bandwidth_delay.max(0.0);
        self.window = self.limited(self.window);
        self.reference = self.limited(self.reference);
    }

    /// Lowers the window to a limit in bytes.
    pub fn limit(&mut self, window: f64) {
        self.window = self.limited(self.window.min(window));
        self.reference = self.window;
    }

    /// Takes a measurement: the utilization of the busiest link, over this share of a round trip. `is_update` is true
    /// once a round trip, so that no change of the window is answered before its effect is seen.
    pub fn measured(&mut self, utilization: f64, share: f64, is_update: bool) {
        self.utilization += (utilization - self.utilization) * share.clamp(0.0, 1.0);
        let HpccSettings { target, max_stage, .. } = self.settings;
        let is_additive = self.utilization < target && self.stage < max_stage;
        // An idle link allows any window; the maximum is finite.
        let factor = if is_additive { 1.0 } else { target / self.utilization.max(f64::MIN_POSITIVE) };
        self.window = self.limited(self.reference * factor + self.increase());
        if is_update {
            self.stage = if is_additive { self.stage + 1 } else { 0 };
            self.reference = self.window;
        }
    }

    /// Halves the window.
    pub fn halve(&mut self) {
        self.limit(self.window / 2.0);
        self.stage = 0;
    }
}
