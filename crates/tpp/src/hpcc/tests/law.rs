use super::*;

const PIPE: f64 = 125_000.0;

/// Returns the law of a flow with a pipe of [`PIPE`] bytes, whose additive increase is 1,000 bytes, after an update.
fn law(utilization: f64) -> WindowLaw {
    let settings = HpccSettings { target: 0.8, max_flows: 25, ..HpccSettings::new(0.8) };
    let mut law = WindowLaw::new(settings, PIPE);
    assert_eq!((law.window(), law.utilization()), (PIPE, 1.0), "a flow begins with all that the path holds");
    // The window is halved by a queue, and what the link reports then is another utilization.
    law.measured(1.6, 1.0, true);
    close(law.window(), PIPE * 0.8 / 1.6 + 1_000.0);
    law.measured(utilization, 1.0, false);
    law
}

#[track_caller]
fn close(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 1e-9, "{found}, expected {expected}");
}

#[test]
fn windows_grow_five_times_and_are_then_adjusted() {
    let mut law = law(0.5);
    let mut expected = 63_500.0;
    close(law.window(), expected + 1_000.0);
    for _ in 0..5 {
        expected += 1_000.0;
        law.measured(0.5, 1.0, true);
        close(law.window(), expected);
    }
    law.measured(0.5, 1.0, true);
    close(law.window(), expected * 0.8 / 0.5 + 1_000.0);
    // After the adjustment they grow again.
    let adjusted = law.window();
    law.measured(0.5, 1.0, true);
    close(law.window(), adjusted + 1_000.0);
    // At the target itself they are adjusted at once.
    (0..10).for_each(|_| law.measured(0.8, 1.0, true));
    close(law.window(), adjusted + 11_000.0);
    law.measured(0.5, 1.0, true);
    close(law.window(), adjusted + 12_000.0);
    law.measured(1.0, 1.0, true);
    close(law.window(), (adjusted + 12_000.0) * 0.8 + 1_000.0);
}

#[test]
fn windows_of_a_round_trip_have_one_reference() {
    let mut law = law(1.0);
    for _ in 0..20 {
        law.measured(1.0, 1.0, false);
        close(law.window(), 63_500.0 * 0.8 + 1_000.0);
    }
    law.measured(0.9, 1.0, false);
    close(law.window(), 63_500.0 * 0.8 / 0.9 + 1_000.0);
}

#[test]
fn utilization_is_smoothed_over_a_round_trip() {
    let mut law = law(1.0);
    law.measured(2.0, 0.25, false);
    close(law.utilization(), 1.25);
    close(law.window(), 63_500.0 * 0.8 / 1.25 + 1_000.0);
    law.measured(0.5, 1e9, false);
    close(law.utilization(), 0.5);
}

#[test]
fn windows_are_between_the_increase_and_the_pipe() {
    let mut law = law(1e12);
    law.measured(1e12, 1.0, true);
    // 1,000 bytes are added even to nothing.
    close(law.window(), 1_000.0);
    for _ in 0..10 {
        law.measured(0.0, 1.0, true);
    }
    close(law.window(), PIPE);
    law.resize(50_000.0);
    close(law.window(), 50_000.0);
    (0..40).for_each(|_| law.halve());
    close(law.window(), 400.0);
}

/// Lets flows share a link, which reports what they offered in the round trip before. Returns their windows, and the
/// utilization.
fn share(flows: usize, rounds: usize) -> (Vec<f64>, f64) {
    let settings = HpccSettings::new(HpccSettings::TARGET);
    let mut laws: Vec<_> = (0..flows).map(|_| WindowLaw::new(settings, PIPE)).collect();
    // They began one after the other.
    laws.iter_mut().enumerate().for_each(|(number, law)| law.limit(PIPE / (1.0 + 3.0 * number as f64)));
    let offered = |laws: &[WindowLaw]| laws.iter().map(WindowLaw::window).sum::<f64>() / PIPE;
    for _ in 0..rounds {
        let utilization = offered(&laws);
        laws.iter_mut().for_each(|law| law.measured(utilization, 1.0, true));
    }
    (laws.iter().map(WindowLaw::window).collect(), offered(&laws))
}

#[test]
fn flows_become_equal_at_the_utilization_of_the_closed_form() {
    for flows in [2, 8, 16, 64] {
        // Differences shrink by η / U a round trip: the fewer flows, the slower.
        let expected = HpccSettings::new(HpccSettings::TARGET).utilization_of(flows as u32);
        let rounds = (8.0 / (expected / HpccSettings::TARGET).ln()) as usize;
        let (windows, utilization) = share(flows, rounds);
        assert!((utilization - expected).abs() < 1e-3, "{flows} flows: {utilization}, expected {expected}");
        let (most, least) =
            (windows.iter().fold(0.0, |a: f64, b| a.max(*b)), windows.iter().fold(f64::MAX, |a, b| a.min(*b)));
        assert!(most / least < 1.02, "{flows} flows: {least} to {most}");
        let (windows, _) = share(flows, rounds / 16);
        assert!(windows[0] / windows[flows - 1] > 1.2, "{flows} flows are equal after some round trips: {windows:?}");
    }
}
