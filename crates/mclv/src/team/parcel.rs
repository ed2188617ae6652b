//! Convert values to bytes and back, to send them between ranks: processes of one program on
//! machines of one kind.

use bytemuck::{AnyBitPattern, NoUninit, cast_slice, pod_collect_to_vec};
use mclv_kernels::enumerate::Scaled;
use mclv_kernels::layer::Columns;
use mclv_kernels::tiles::Tiles;

/// A value that can be sent. Floats keep their bits.
pub(crate) trait Parcel: Sized {
    /// Appends the value to `to`.
    fn pack(&self, to: &mut Vec<u8>);
    /// Takes a value from the front of `from`.
    fn unpack(from: &mut &[u8]) -> Self;

    /// Appends all values, without their number.
    fn pack_all(values: &[Self], to: &mut Vec<u8>) {
        values.iter().for_each(|value| value.pack(to));
    }
    /// Takes `n` values from the front of `from`.
    fn unpack_all(n: usize, from: &mut &[u8]) -> Vec<Self> {
        (0..n).map(|_| Self::unpack(from)).collect()
    }
}

fn take<'a>(from: &mut &'a [u8], n: usize) -> &'a [u8] {
    let (front, rest) = from.split_at(n);
    *from = rest;
    front
}

fn take_numbers<T: NoUninit + AnyBitPattern>(n: usize, from: &mut &[u8]) -> Vec<T> {
    pod_collect_to_vec(take(from, n * size_of::<T>()))
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Parcel for $number {
            fn pack(&self, to: &mut Vec<u8>) {
                to.extend_from_slice(&self.to_ne_bytes());
            }
            fn unpack(from: &mut &[u8]) -> Self {
                Self::from_ne_bytes(take(from, size_of::<Self>()).try_into().expect("as many bytes as asked for"))
            }
            fn pack_all(values: &[Self], to: &mut Vec<u8>) {
                to.extend_from_slice(cast_slice(values));
            }
            fn unpack_all(n: usize, from: &mut &[u8]) -> Vec<Self> {
                take_numbers(n, from)
            }
        }
    )*};
}
numbers!(u8, u32, u64, f32, f64);

/// Implements parcels for plain structures, field by field. Around the definition of a structure,
/// fields are named once.
macro_rules! parcel {
    ($(#[$meta:meta])* $vis:vis struct $name:ident { $($(#[$of_field:meta])* $field_vis:vis $field:ident: $kind:ty),* $(,)? }) => {
        $(#[$meta])*
        $vis struct $name { $($(#[$of_field])* $field_vis $field: $kind),* }
        $crate::team::parcel!($name { $($field),* });
    };
    ($name:ty { $($field:ident),* $(,)? }) => {
        impl $crate::team::Parcel for $name {
            fn pack(&self, to: &mut Vec<u8>) {
                $($crate::team::Parcel::pack(&self.$field, to);)*
            }
            fn unpack(from: &mut &[u8]) -> Self {
                $(let $field = $crate::team::Parcel::unpack(from);)*
                Self { $($field),* }
            }
        }
    };
}
pub(crate) use parcel;

impl Parcel for usize {
    fn pack(&self, to: &mut Vec<u8>) {
        (*self as u64).pack(to);
    }
    fn unpack(from: &mut &[u8]) -> Self {
        u64::unpack(from) as Self
    }
}

impl Parcel for bool {
    fn pack(&self, to: &mut Vec<u8>) {
        u8::from(*self).pack(to);
    }
    fn unpack(from: &mut &[u8]) -> Self {
        u8::unpack(from) == 1
    }
}

impl<T: Parcel> Parcel for Vec<T> {
    fn pack(&self, to: &mut Vec<u8>) {
        (self.len() as u64).pack(to);
        T::pack_all(self, to);
    }
    fn unpack(from: &mut &[u8]) -> Self {
        let n = u64::unpack(from) as usize;
        T::unpack_all(n, from)
    }
}

impl<T: Parcel> Parcel for Option<T> {
    fn pack(&self, to: &mut Vec<u8>) {
        self.is_some().pack(to);
        self.iter().for_each(|value| value.pack(to));
    }
    fn unpack(from: &mut &[u8]) -> Self {
        bool::unpack(from).then(|| T::unpack(from))
    }
}

impl<A: Parcel, B: Parcel> Parcel for (A, B) {
    fn pack(&self, to: &mut Vec<u8>) {
        self.0.pack(to);
        self.1.pack(to);
    }
    fn unpack(from: &mut &[u8]) -> Self {
        (A::unpack(from), B::unpack(from))
    }
}

impl Parcel for Scaled {
    fn pack(&self, to: &mut Vec<u8>) {
        self.parts().pack(to);
    }
    fn unpack(from: &mut &[u8]) -> Self {
        let (mantissa, exponent) = Parcel::unpack(from);
        Self::from_parts(mantissa, exponent)
    }
}

impl Parcel for Tiles {
    fn pack(&self, to: &mut Vec<u8>) {
        (self.n_rows(), self.n_columns()).pack(to);
        f32::pack_all(self.as_slice(), to);
    }
    fn unpack(from: &mut &[u8]) -> Self {
        let (n_rows, n_columns) = Parcel::unpack(from);
        let mut tiles = Self::zeros(n_rows, n_columns);
        let values = tiles.as_mut_slice();
        values.copy_from_slice(&f32::unpack_all(values.len(), from));
        tiles
    }
}

impl Parcel for Columns {
    fn pack(&self, to: &mut Vec<u8>) {
        (self.n_rows(), self.n_units()).pack(to);
        let (words, values) = self.parts();
        (words.map(<[_]>::to_vec), values.map(<[_]>::to_vec)).pack(to);
    }
    fn unpack(from: &mut &[u8]) -> Self {
        let (n_rows, n_units) = Parcel::unpack(from);
        Self::from_parts(n_rows, n_units, Parcel::unpack(from))
    }
}
