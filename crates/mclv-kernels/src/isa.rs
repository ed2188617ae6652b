//! Detect once which instruction set the kernels may use.

use std::fmt;
use std::sync::OnceLock;

/// An instruction set that this CPU is known to have.
///
/// ```
/// use mclv_kernels::Isa;
/// assert!(Isa::available().contains(&Isa::portable()));
/// println!("kernels: {}", Isa::best());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Isa(Kind);

/// This type is private, so that every `Isa` comes from a constructor that has checked the CPU.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Isa {
    /// Returns plain Rust, which runs on every CPU. The other instruction sets are tested against
    /// it.
    pub const fn portable() -> Self {
        Self(Kind::Portable)
    }

    /// Returns AVX2 with FMA (and the bit instructions that always come with them), if the CPU has
    /// them.
    pub fn avx2() -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("popcnt")
        {
            return Some(Self(Kind::Avx2));
        }
        None
    }

    /// Returns AVX2 with the registers, the three-way logic and the compression of AVX-512, still
    /// 256 bits wide, if the CPU has them (Ice Lake, Zen 4 and later).
    pub fn avx512() -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        if Self::avx2().is_some()
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vbmi2")
        {
            return Some(Self(Kind::Avx512));
        }
        None
    }

    /// Returns all instruction sets that this CPU has, the portable one first.
    pub fn available() -> Vec<Self> {
        std::iter::once(Self::portable()).chain(Self::avx2()).chain(Self::avx512()).collect()
    }

    /// Returns the fastest instruction set that this CPU has, or a slower one if the environment
    /// sets `MCLV_ISA=portable` or `MCLV_ISA=avx2`.
    pub fn best() -> Self {
        static BEST: OnceLock<Isa> = OnceLock::new();
        *BEST.get_or_init(|| match std::env::var("MCLV_ISA") {
            Ok(wish) if wish == "portable" => Self::portable(),
            Ok(wish) if wish == "avx2" => Self::avx2().unwrap_or(Self::portable()),
            _ => Self::avx512().or_else(Self::avx2).unwrap_or(Self::portable()),
        })
    }

    /// Returns the name: `portable`, `avx2+fma` or `avx512vl`.
    pub const fn name(self) -> &'static str {
        match self.0 {
            Kind::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => "avx2+fma",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => "avx512vl",
        }
    }

    pub(crate) const fn kind(self) -> Kind {
        self.0
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Isa({self})")
    }
}

/// Defines safe entry points `fn name(isa, …)`. Each is compiled for every instruction set from the
/// function named after `=`, which is generic over [`Simd`](crate::arch::Simd) and perhaps over a
/// constant.
macro_rules! kernels {
    ($($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? = $generic:ident $(<$($flag:literal),+>)?;)*) => {
        $($(#[$meta])*
        $vis fn $name(isa: $crate::Isa, $($arg: $ty),*) $(-> $ret)? {
            match isa.kind() {
                $crate::isa::Kind::Portable => $generic::<$crate::arch::portable::Portable $($(, $flag)+)?>($($arg),*),
                #[cfg(target_arch = "x86_64")]
                $crate::isa::Kind::Avx2 => {
                    #[target_feature(enable = "avx2,fma,bmi1,popcnt")]
                    fn build($($arg: $ty),*) $(-> $ret)? {
                        $generic::<$crate::arch::avx2::Avx2 $($(, $flag)+)?>($($arg),*)
                    }
                    // SAFETY: an `Isa` of this kind exists only where the CPU has these features.
                    unsafe { build($($arg),*) }
                }
                #[cfg(target_arch = "x86_64")]
                $crate::isa::Kind::Avx512 => {
                    #[target_feature(enable = "avx2,fma,bmi1,popcnt,avx512f,avx512vl,avx512bw,avx512dq,avx512vbmi2")]
                    fn build($($arg: $ty),*) $(-> $ret)? {
                        $generic::<$crate::arch::avx2::Avx512 $($(, $flag)+)?>($($arg),*)
                    }
                    // SAFETY: an `Isa` of this kind exists only where the CPU has these features.
                    unsafe { build($($arg),*) }
                }
            }
        })*
    };
}
pub(crate) use kernels;
