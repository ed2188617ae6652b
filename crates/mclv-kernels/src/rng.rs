//! Draw counter-based random numbers: Philox4x32-10 (Salmon et al., SC 2011).
//!
//! A random number is a pure function of its place: the *seed* is the key, and the *stream* (a
//! chain, a tour, a row), the *step* in that stream and the *block* in that step make up the
//! counter. Nothing is carried from draw to draw, so any thread may compute any draw, in any order,
//! and always gets the same number.
//!
//! ```text
//! counter word   0            1           2 and 3
//!                block (u32)  step (u32)  stream (u64)
//! ```
//! A layer kernel that draws a Bernoulli bit for each of 64 units (one word `w`) uses blocks
//! `8w … 8w+7`. The low half of output word `j` of block `8w + 4g + l` decides unit
//! `32g + 16⌊j/2⌋ + 2l + (j mod 2)` of that word; the high half decides the unit 8 beyond. This is
//! the order in which four blocks leave a 256-bit register. If 16 bits do not decide unit `i` of
//! the layer, word 0 of block `2³¹ + i` does.

const M0: u32 = 0xD251_1F53;
const M1: u32 = 0xCD9E_8D57;
const W0: u32 = 0x9E37_79B9;
const W1: u32 = 0xBB67_AE85;

/// The multipliers of the two halves of a round.
pub(crate) const MULTIPLIERS: [u32; 2] = [M0, M1];
/// The amounts by which the key grows after each round.
pub(crate) const WEYL: [u32; 2] = [W0, W1];
/// The number of rounds per block.
pub(crate) const N_ROUNDS: usize = 10;

/// A stream of random numbers, divided into steps: for example that of one chain or one tour.
///
/// ```
/// use mclv_kernels::rng::Stream;
/// let chain = Stream::new(42, 7);
/// assert_eq!(chain.at(3).block(0), Stream::new(42, 7).at(3).block(0));
/// assert_ne!(chain.at(3).block(0), chain.at(4).block(0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stream {
    seed: u64,
    id: u64,
}

impl Stream {
    /// Returns stream number `id` of `seed`.
    pub const fn new(seed: u64, id: u64) -> Self {
        Self { seed, id }
    }

    /// Returns the draws of step `step`.
    pub const fn at(self, step: u32) -> Draws {
        Draws { stream: self, step }
    }

    /// Returns a reader of the whole stream in order, for work that is not divided into steps.
    pub const fn reader(self) -> Reader {
        Reader { stream: self, position: 0, buffer: [0; 4], left: 0 }
    }
}

/// The random numbers of one step of one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Draws {
    stream: Stream,
    step: u32,
}

impl Draws {
    pub(crate) const fn key(self) -> [u32; 2] {
        [self.stream.seed as u32, (self.stream.seed >> 32) as u32]
    }

    pub(crate) const fn counter(self, block: u32) -> [u32; 4] {
        [block, self.step, self.stream.id as u32, (self.stream.id >> 32) as u32]
    }

    /// Returns four uniform 32-bit numbers: block `block` of this step.
    pub const fn block(self, block: u32) -> [u32; 4] {
        philox(self.counter(block), self.key())
    }
}

/// The Philox4x32-10 bijection.
const fn philox(mut x: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    let mut round = 0;
    while round < N_ROUNDS {
        let p0 = M0 as u64 * x[0] as u64;
        let p1 = M1 as u64 * x[2] as u64;
        x = [(p1 >> 32) as u32 ^ x[1] ^ key[0], p1 as u32, (p0 >> 32) as u32 ^ x[3] ^ key[1], p0 as u32];
        key = [key[0].wrapping_add(W0), key[1].wrapping_add(W1)];
        round += 1;
    }
    x
}

/// A generator that reads a stream in order.
///
/// ```
/// use mclv_kernels::rng::Stream;
/// let mut rng = Stream::new(1, 0).reader();
/// let mut order: Vec<u32> = (0..10).collect();
/// rng.shuffle(&mut order);
/// order.sort();
/// assert_eq!(order, (0..10).collect::<Vec<_>>());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reader {
    stream: Stream,
    position: u64,
    buffer: [u32; 4],
    left: usize,
}

impl Reader {
    /// Returns a uniform 32-bit number.
    pub fn next_u32(&mut self) -> u32 {
        if self.left == 0 {
            self.buffer = self.stream.at((self.position >> 32) as u32).block(self.position as u32);
            self.position += 1;
            self.left = 4;
        }
        self.left -= 1;
        self.buffer[3 - self.left]
    }

    /// Returns a uniform 64-bit number.
    pub fn next_u64(&mut self) -> u64 {
        u64::from(self.next_u32()) << 32 | u64::from(self.next_u32())
    }

    /// Returns a uniform number in the open interval (0, 1): `(k + ½)·2⁻⁵²`, never 0 and never 1.
    pub fn uniform(&mut self) -> f64 {
        ((self.next_u64() >> 12) as f64 + 0.5) * (1.0 / (1u64 << 52) as f64)
    }

    /// Returns a uniform index below `n`, without bias (Lemire 2019).
    ///
    /// # Panics
    /// If `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        assert!(n > 0, "no index is below 0");
        let threshold = n.wrapping_neg() % n;
        loop {
            let wide = u128::from(self.next_u64()) * u128::from(n);
            if wide as u64 >= threshold {
                return (wide >> 64) as u64;
            }
        }
    }

    /// Puts `items` in a uniformly random order (Fisher–Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64 + 1) as usize);
        }
    }

    /// Returns a standard normal number (Box–Muller, one of the pair).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// A reader is a generator for everything that takes `rand`'s traits: distributions, shuffles,
/// other samplers.
///
/// ```
/// use mclv_kernels::rng::Stream;
/// use rand_core::Rng;
/// fn coin(rng: &mut impl Rng) -> bool {
///     rng.next_u32() & 1 == 1
/// }
/// let mut rng = Stream::new(7, 0).reader();
/// let heads = (0..1000).filter(|_| coin(&mut rng)).count();
/// assert!((400..600).contains(&heads));
/// ```
impl rand_core::TryRng for Reader {
    type Error = std::convert::Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        Ok(self.next_u32())
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        Ok(self.next_u64())
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Self::Error> {
        for chunk in bytes.chunks_mut(4) {
            chunk.copy_from_slice(&self.next_u32().to_le_bytes()[..chunk.len()]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known answers of the reference implementation (Random123, `kat_vectors`).
    #[test]
    fn philox_reproduces_the_published_vectors() {
        assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(
            philox([u32::MAX; 4], [u32::MAX; 2]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
        assert_eq!(
            philox([0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344], [0xa409_3822, 0x299f_31d0]),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn bounded_indices_are_uniform() {
        // χ² with 6 degrees of freedom; 27.9 is its 1 − 1e-4 quantile.
        let mut rng = Stream::new(11, 0).reader();
        let n = 70_000;
        let mut counts = [0.0f64; 7];
        for _ in 0..n {
            counts[rng.below(7) as usize] += 1.0;
        }
        let expected = f64::from(n) / 7.0;
        let chi2: f64 = counts.iter().map(|c| (c - expected).powi(2) / expected).sum();
        assert!(chi2 < 27.9, "χ² = {chi2}");
    }

    #[test]
    fn normals_have_mean_0_and_variance_1() {
        let mut rng = Stream::new(12, 0).reader();
        let n = 100_000;
        let x: Vec<f64> = (0..n).map(|_| rng.normal()).collect();
        let mean = x.iter().sum::<f64>() / f64::from(n);
        let var = x.iter().map(|x| x * x).sum::<f64>() / f64::from(n);
        // Five standard errors each: false alarm below 1e-6.
        assert!(
            mean.abs() < 5.0 / f64::from(n).sqrt() && (var - 1.0).abs() < 5.0 * (2.0 / f64::from(n)).sqrt()
        );
    }
}
