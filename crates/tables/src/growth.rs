//! Grows large vectors in small steps, so that little of their memory lies idle.

/// Length in elements from which on a vector grows by an eighth instead of doubling. The elements of a vector that is
/// filled one by one are then moved eight times instead of once, which costs a few nanoseconds an element.
const LONG: usize = 1024;

/// Reserves memory for `more` elements. A long vector gets an eighth of its length, where [`Vec::reserve`] would double
/// it.
pub fn reserve_gently<T>(vec: &mut Vec<T>, more: usize) {
    if vec.capacity() - vec.len() >= more {
        return;
    }
    if vec.len() < LONG { vec.reserve(more) } else { vec.reserve_exact(more.max(vec.len() / 8)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_vectors_have_little_spare_memory() {
        let mut vec = Vec::new();
        for number in 0..100_000 {
            reserve_gently(&mut vec, 1);
            vec.push(number);
            let limit = if number < 1024 { 2 * number + 8 } else { number + number / 8 + 1024 };
            assert!(vec.capacity() <= limit, "{} elements have room for {}", vec.len(), vec.capacity());
        }
        reserve_gently(&mut vec, 1_000_000);
        assert!(vec.capacity() >= 1_100_000);
    }
}
