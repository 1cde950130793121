//! Detects SIMD extensions. The loops are plain code, compiled several times; nothing else depends on the result.

/// The instruction set that code is compiled for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Level {
    /// The baseline of the architecture.
    Baseline,
    /// AVX2 and the bit manipulation instructions introduced with it.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX-512 F, DQ, BW and VL, and everything in `Avx2`.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// Returns the best level that this processor supports.
pub(crate) fn level() -> Level {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected as has;
        let avx2 = has!("avx2") && has!("bmi1") && has!("bmi2") && has!("lzcnt") && has!("popcnt");
        if avx2 && has!("avx512f") && has!("avx512dq") && has!("avx512bw") && has!("avx512vl") {
            return Level::Avx512;
        }
        if avx2 {
            return Level::Avx2;
        }
    }
    Level::Baseline
}
