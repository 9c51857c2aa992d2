//! One loop, compiled for several instruction sets, chosen at run time.

/// The widest instruction set of this processor that the loops are compiled for. Only [`Simd::detect`] makes one above
/// the baseline, so that holding one proves the processor has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Simd(Level);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Level {
    Baseline,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Simd {
    /// What every processor of this architecture has.
    pub(crate) const BASELINE: Self = Self(Level::Baseline);

    /// What this processor has.
    pub(crate) fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
            {
                return Self(Level::Avx512);
            }
            if is_x86_feature_detected!("avx2") {
                return Self(Level::Avx2);
            }
        }
        Self::BASELINE
    }

    pub(crate) const fn level(self) -> Level {
        self.0
    }

    /// Name for logs.
    pub(crate) const fn name(self) -> &'static str {
        match self.0 {
            Level::Baseline => "baseline",
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => "avx512",
        }
    }
}

/// Odd lanes of sixteen.
#[cfg(target_arch = "x86_64")]
pub(crate) const ODD: u16 = 0xaaaa;

/// Declares a function whose loops the compiler vectorises once per instruction set; its first argument is the
/// [`Simd`] to run with. Arguments are names, not patterns.
macro_rules! multiversion {
    ($(#[$meta:meta])* $vis:vis fn $name:ident $(<$($generic:ident: $bound:path),+>)? ($($arg:ident: $ty:ty),* $(,)?) $body:block) => {
        $(#[$meta])*
        $vis fn $name $(<$($generic: $bound),+>)? (simd: $crate::simd::Simd, $($arg: $ty),*) {
            #[inline(always)]
            fn body $(<$($generic: $bound),+>)? ($($arg: $ty),*) $body

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
            fn avx512 $(<$($generic: $bound),+>)? ($($arg: $ty),*) {
                body($($arg),*)
            }

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2")]
            fn avx2 $(<$($generic: $bound),+>)? ($($arg: $ty),*) {
                body($($arg),*)
            }

            match simd.level() {
                $crate::simd::Level::Baseline => body($($arg),*),
                // SAFETY: a `Simd` of this level exists only where `Simd::detect` found these features.
                #[cfg(target_arch = "x86_64")]
                $crate::simd::Level::Avx512 => unsafe { avx512($($arg),*) },
                // SAFETY: as above.
                #[cfg(target_arch = "x86_64")]
                $crate::simd::Level::Avx2 => unsafe { avx2($($arg),*) },
            }
        }
    };
}
pub(crate) use multiversion;
