//! What SIMD the processor has. Loops are plain code, compiled several times; nothing else depends on this.

/// The instructions that code is compiled for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Level {
    /// What every processor of the architecture has.
    Baseline,
    /// AVX2 and the bit instructions that came with it.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX-512 with its F, DQ, BW and VL parts, and what AVX2 stands for.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// The best that this processor has.
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
