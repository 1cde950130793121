//! Computes the smallest possible stash: exactly for given homes, and as an expectation for a load.

/// Returns the smallest number of entries that any placement leaves without a cell, for homes on a circle of `cells`
/// cells and windows of `window` cells.
///
/// All windows are equally long, so serving the earliest home first is optimal on a line. The sweep begins at a cell
/// that no entry needs to pass, where the circle can be cut without loss. Returns `None` if there is no such cell,
/// which takes a load near 1.
pub fn least_stash(homes: &[u32], cells: u32, window: u32) -> Option<usize> {
    let mut arrivals = vec![0u32; cells as usize];
    for home in homes {
        arrivals[*home as usize] += 1;
    }
    let start = first_cut(&arrivals)?;
    let (mut waiting, mut lost) = (0u64, 0);
    for turn in 0..cells as usize {
        let arrived = u64::from(arrivals[(start + turn) % cells as usize]);
        let accepted = arrived.min(u64::from(window) - waiting);
        lost += (arrived - accepted) as usize;
        waiting = (waiting + accepted).saturating_sub(1);
    }
    Some(lost)
}

/// Returns a cell before which no entry waits, even if none is ever given up.
fn first_cut(arrivals: &[u32]) -> Option<usize> {
    let mut waiting = 0u64;
    for (at, arrived) in arrivals.iter().chain(arrivals).enumerate() {
        if waiting == 0 && at >= arrivals.len() {
            return Some(at - arrivals.len());
        }
        waiting = (waiting + u64::from(*arrived)).saturating_sub(1);
    }
    None
}

/// Returns the share of entries that the best placement leaves without a cell, under random hashing with `load` entries
/// a cell. `home_distance` is 1 for windows, and the cells of a bucket for two buckets.
///
/// The entries that wait for a cell are a Markov chain: at each home a Poisson number arrives, as many are accepted as
/// the window has room for, and `home_distance` of them get their cells.
pub fn expected_overflow(load: f64, window: u32, home_distance: u32) -> f64 {
    let (states, served) = (window as usize + 1, home_distance as usize);
    let rate = load * f64::from(home_distance);
    let arrivals = poisson(rate, 8 * states + 64);
    let mut chance = vec![0.0; states];
    chance[0] = 1.0;
    let mut lost = 0.0;
    for _ in 0..20_000 {
        let mut next = vec![0.0; states];
        let mut now_lost = 0.0;
        for (waiting, held) in chance.iter().enumerate() {
            for (arrived, probability) in arrivals.iter().enumerate() {
                let accepted = arrived.min(window as usize - waiting);
                now_lost += held * probability * (arrived - accepted) as f64;
                next[(waiting + accepted).saturating_sub(served)] += held * probability;
            }
        }
        let change: f64 = next.iter().zip(&chance).map(|(a, b)| (a - b).abs()).sum();
        (chance, lost) = (next, now_lost);
        if change < 1e-13 {
            break;
        }
    }
    lost / rate
}

fn poisson(rate: f64, count: usize) -> Vec<f64> {
    let mut chance = (-rate).exp();
    (1..=count)
        .map(|number| {
            let now = chance;
            chance *= rate / number as f64;
            now
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_expected_overflow_of_known_loads() {
        let per_mille = |load, window, distance| expected_overflow(load, window, distance) * 1000.0;
        assert!((0.9..1.1).contains(&per_mille(0.675, 8, 1)), "{}", per_mille(0.675, 8, 1));
        assert!((0.85..1.1).contains(&per_mille(0.85, 16, 1)), "{}", per_mille(0.85, 16, 1));
        assert!((0.9..1.1).contains(&per_mille(0.297, 4, 2)), "{}", per_mille(0.297, 4, 2));
        assert!((8.8..9.2).contains(&per_mille(0.5, 4, 2)), "{}", per_mille(0.5, 4, 2));
        assert!((0.33..0.37).contains(&per_mille(0.5, 8, 4)), "{}", per_mille(0.5, 8, 4));
    }

    #[test]
    fn small_circles_by_hand() {
        assert_eq!(least_stash(&[0, 0, 0], 8, 2), Some(1));
        assert_eq!(least_stash(&[7, 7, 7], 8, 2), Some(1));
        assert_eq!(least_stash(&[7, 7, 0], 8, 2), Some(0));
        assert_eq!(least_stash(&[0, 0, 0, 0], 8, 4), Some(0));
        assert_eq!(least_stash(&[0; 20], 8, 4), None);
    }
}
