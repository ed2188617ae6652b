//! Draw a layer of two chains together, such that each follows its own distribution and equal inputs
//! give equal states.
//!
//! Let `p` and `q` be the distributions of the layer in the two chains: products of Bernoulli
//! distributions. Two couplings are used, because they do different things:
//!
//! - [`by_units`] compares one uniform number of each unit with both means. Each unit differs with
//!   the least possible probability, `|p_i − q_i|`, so the number of units that differ is the
//!   smallest possible on average. But all of a large layer hardly ever agrees.
//! - [`as_one`] draws the state of the layer as a whole. The states agree with the largest possible
//!   probability, `Σ min(p, q)`. If they do not, they are nearly independent of each other. This is
//!   the coupling of Qiu, Zhang and Wang (2020), by rejection as in Thorisson (2000):
//!
//! ```text
//! x ~ p;  y = x with probability min(1, q(x)/p(x));
//! else    y ~ q again and again, until it is kept with probability 1 − min(1, p(y)/q(y))
//! ```
//! `y` then has the distribution `min(p,q) + (q − min(p,q)) = q`. Each chain makes one draw on
//! average beside the first.
//!
//! The visible layer is drawn by units, which brings the chains close. The hidden layer is drawn as
//! one, which makes them meet. With both layers drawn as one, pairs take longer to meet.

use crate::bits::{ones, words_for};
use crate::rng::{Draws, Stream};
use mclv_kernels::Isa;
use mclv_kernels::layer::{Affine, Scratch, States, inputs, quick_log_weights, sample};
use mclv_kernels::math::sigmoid_f32;
use mclv_kernels::tiles::Tiles;

/// The block of random numbers that decides whether the states agree. Layers do not use it.
const AGREE: u32 = 1 << 30;

/// The states of a layer in the two chains of each pair, packed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Both {
    pub(super) x: Vec<u64>,
    pub(super) y: Vec<u64>,
}

/// The random numbers of the proposals of one pair.
#[derive(Clone, Copy, Debug)]
pub(super) struct Proposals {
    pub(super) stream: Stream,
    pub(super) next: u32,
}

/// The uniform number, in the open interval (0, 1), that 32 random bits stand for.
pub(in crate::gradient) fn uniform(bits: u32) -> f64 {
    (f64::from(bits) + 0.5) / 4_294_967_296.0
}

/// The uniform number that decides whether states agree, or whether a proposal is kept.
pub(in crate::gradient) fn uniform_of_agreement(draws: Draws) -> f64 {
    uniform(draws.block(AGREE)[0])
}

/// The inputs of the layer given packed states of the other, row by row.
fn inputs_of(affine: &Affine, given: &[u64], n: usize, scratch: &mut Scratch) -> Vec<f32> {
    let mut x = Tiles::zeros(n, affine.n_out());
    inputs(Isa::best(), affine, States::Bits(given), scratch, &mut x);
    x.to_rows()
}

/// Draws each unit of the layer in both chains with one uniform number.
pub(super) fn by_units(affine: &Affine, given: &Both, draws: &[Draws], scratch: &mut Scratch) -> Both {
    let (n, n_out) = (draws.len(), affine.n_out());
    let n_words = words_for(n_out);
    let [x, y] = [&given.x, &given.y].map(|given| {
        let x = inputs_of(affine, given, n, scratch);
        // The probability of the unlikely value keeps its digits, however small it is.
        let mut tails: Vec<f32> = x.iter().map(|x| -x.abs()).collect();
        sigmoid_f32(Isa::best(), &mut tails);
        (x, tails)
    });
    let mut out = Both { x: vec![0; n * n_words], y: vec![0; n * n_words] };
    for (r, draws) in draws.iter().enumerate() {
        let mut bits = [0; 4];
        for i in 0..n_out {
            if i % 4 == 0 {
                bits = draws.block((i / 4) as u32);
            }
            let u = uniform(bits[i % 4]);
            let is_on = |(inputs, tails): &(Vec<f32>, Vec<f32>)| {
                let (x, tail) = (inputs[r * n_out + i], f64::from(tails[r * n_out + i]));
                u64::from(if x < 0.0 { u < tail } else { 1.0 - u >= tail })
            };
            out.x[r * n_words + i / 64] |= is_on(&x) << (i % 64);
            out.y[r * n_words + i / 64] |= is_on(&y) << (i % 64);
        }
    }
    out
}

/// Draws the state of the layer as a whole.
pub(super) fn as_one(
    affine: &Affine,
    given: &Both,
    draws: &[Draws],
    proposals: &mut [Proposals],
    scratch: &mut Scratch,
) -> Both {
    let (n, n_out, isa) = (draws.len(), affine.n_out(), Isa::best());
    let (n_words, n_given) = (words_for(n_out), words_for(affine.n_in()));
    let no_bias = vec![0.0; affine.n_in()];
    let [x, y] = [&given.x, &given.y].map(|given| {
        let mut sums = vec![0.0; n];
        quick_log_weights(isa, affine, &no_bias, States::Bits(given), scratch, &mut sums);
        (inputs_of(affine, given, n, scratch), sums)
    });
    // log p(z)/q(z) of a state z of pair r.
    let log_ratio = |r: usize, z: &[u64]| -> f64 {
        let input = |of: &(Vec<f32>, Vec<f64>), i: usize| f64::from(of.0[r * n_out + i]);
        ones(z).map(|i| input(&x, i) - input(&y, i)).sum::<f64>() - (x.1[r] - y.1[r])
    };
    let mut out = Both { x: vec![0; n * n_words], y: vec![0; n * n_words] };
    sample(isa, affine, States::Bits(&given.x), draws, scratch, &mut out.x, None);
    let mut z = vec![0; n_words];
    for (r, &draws) in draws.iter().enumerate() {
        let row = r * n_words..(r + 1) * n_words;
        z.copy_from_slice(&out.x[row.clone()]);
        if uniform_of_agreement(draws).ln() > -log_ratio(r, &z) {
            let given = States::Bits(&given.y[r * n_given..][..n_given]);
            loop {
                let draws = proposals[r].stream.at(proposals[r].next);
                proposals[r].next += 1;
                sample(isa, affine, given, &[draws], scratch, &mut z, None);
                if uniform_of_agreement(draws).ln() > log_ratio(r, &z) {
                    break;
                }
            }
        }
        out.y[row].copy_from_slice(&z);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tests::random_rbm;
    use crate::rng::{Purpose, stream};
    use crate::statistics::largest;

    const N: usize = 40_000;
    /// 200 comparisons: chance exceeds it for fewer than one seed in 10,000.
    const LIMIT: f64 = 5.0;

    /// Frequencies of all pairs of states of five units whose inputs differ, some in their sign.
    fn frequencies(
        how: impl Fn(&Affine, &Both, &[Draws], &mut [Proposals]) -> Both,
    ) -> (Vec<[f64; 32]>, [Vec<f64>; 2]) {
        let rbm = random_rbm(6, 5, 1.0, 71);
        let given = Both { x: vec![0b10_0110; N], y: vec![0b01_0111; N] };
        let numbers = |purpose, r: usize| stream(6, purpose, r as u64);
        let draws: Vec<Draws> = (0..N).map(|r| numbers(Purpose::SelfTest, r).at(1)).collect();
        let mut proposals: Vec<Proposals> =
            (0..N).map(|r| Proposals { stream: numbers(Purpose::Coupling, r), next: 0 }).collect();
        let both = how(rbm.up(), &given, &draws, &mut proposals);
        let mut counts = vec![[0.0; 32]; 32];
        both.x.iter().zip(&both.y).for_each(|(&x, &y)| counts[x as usize][y as usize] += 1.0 / N as f64);
        let p = [&given.x, &given.y].map(|given| {
            let x = inputs_of(rbm.up(), &given[..1], 1, &mut Scratch::default());
            let of = |z: usize| -> f64 {
                let p = |(i, &x): (usize, &f32)| {
                    1.0 / (1.0 + if z >> i & 1 == 1 { -f64::from(x) } else { f64::from(x) }.exp())
                };
                x.iter().enumerate().map(p).product()
            };
            (0..32).map(of).collect::<Vec<f64>>()
        });
        (counts, p)
    }

    fn z(found: f64, expected: f64) -> f64 {
        ((found - expected) / (expected * (1.0 - expected) / N as f64).sqrt()).abs()
    }

    /// How far the frequencies of both chains are from their distributions.
    fn worst(counts: &[[f64; 32]], p: &[Vec<f64>; 2]) -> f64 {
        let of_x = (0..32).map(|s| z(counts[s].iter().sum(), p[0][s]));
        let of_y = (0..32).map(|s| z(counts.iter().map(|row| row[s]).sum(), p[1][s]));
        largest(of_x.chain(of_y))
    }

    fn agree(counts: &[[f64; 32]]) -> f64 {
        (0..32).map(|s| counts[s][s]).sum()
    }

    #[test]
    fn states_agree_as_often_as_they_can_and_follow_their_distributions() {
        let (counts, p) = frequencies(|affine, given, draws, proposals| {
            as_one(affine, given, draws, proposals, &mut Scratch::default())
        });
        let most: f64 = p[0].iter().zip(&p[1]).map(|(p, q)| p.min(*q)).sum();
        assert!(worst(&counts, &p) < LIMIT, "{}", worst(&counts, &p));
        assert!(z(agree(&counts), most) < LIMIT, "{} of {most}", agree(&counts));
        // The control: a state that may not agree is drawn from q without rejection.
        let (counts, p) = frequencies(|affine, given, draws, proposals| {
            let mut both = as_one(affine, given, draws, proposals, &mut Scratch::default());
            let once: Vec<Draws> = proposals.iter().map(|of| of.stream.at(0)).collect();
            let mut first = vec![0; N];
            let scratch = &mut Scratch::default();
            sample(Isa::best(), affine, States::Bits(&given.y), &once, scratch, &mut first, None);
            for r in (0..N).filter(|&r| proposals[r].next > 0) {
                both.y[r] = first[r];
            }
            both
        });
        assert!(worst(&counts, &p) > 2.0 * LIMIT, "the control must be caught: {}", worst(&counts, &p));
    }

    #[test]
    fn units_differ_as_rarely_as_they_can_and_follow_their_distributions() {
        let units = |counts: &[[f64; 32]], p: &[Vec<f64>; 2]| {
            let on = |p: &[f64], i: usize| -> f64 { (0..32).filter(|s| s >> i & 1 == 1).map(|s| p[s]).sum() };
            let differ = |i: usize| -> f64 {
                let pairs = (0..32).flat_map(|x| (0..32).map(move |y| (x, y)));
                pairs.filter(|(x, y)| (x ^ y) >> i & 1 == 1).map(|(x, y)| counts[x][y]).sum()
            };
            largest((0..5).map(|i| z(differ(i), (on(&p[0], i) - on(&p[1], i)).abs())))
        };
        let (counts, p) =
            frequencies(|affine, given, draws, _| by_units(affine, given, draws, &mut Scratch::default()));
        assert!(worst(&counts, &p) < LIMIT && units(&counts, &p) < LIMIT, "{}", units(&counts, &p));
        // The control: the kernel that both chains use alone, with the same numbers. It compares them
        // with the unlikely value, which is another one if the sign of the input differs.
        let (counts, p) = frequencies(|affine, given, draws, _| {
            let [x, y] = [&given.x, &given.y].map(|given| {
                let mut out = vec![0; N];
                sample(
                    Isa::best(),
                    affine,
                    States::Bits(given),
                    draws,
                    &mut Scratch::default(),
                    &mut out,
                    None,
                );
                out
            });
            Both { x, y }
        });
        assert!(worst(&counts, &p) < LIMIT && units(&counts, &p) > 2.0 * LIMIT, "{}", units(&counts, &p));
    }

    /// Equal states stay equal, in large layers and whatever stands beside them.
    #[test]
    fn chains_that_have_met_stay_together() {
        let rbm = random_rbm(200, 70, 0.7, 72);
        let mut rng = stream(7, Purpose::SelfTest, 1).reader();
        let words: Vec<u64> =
            (0..9 * 4).map(|k| rng.next_u64() & if k % 4 == 3 { 0xff } else { u64::MAX }).collect();
        let mut given = Both { x: words.clone(), y: words };
        // Every third pair differs.
        (0..3).for_each(|r| given.y[12 * r] ^= 1);
        let draws: Vec<Draws> = (0..9).map(|r| stream(8, Purpose::SelfTest, r).at(0)).collect();
        let mut proposals: Vec<Proposals> =
            (0..9).map(|r| Proposals { stream: stream(8, Purpose::Coupling, r), next: 0 }).collect();
        for _ in 0..20 {
            let h = as_one(rbm.up(), &given, &draws, &mut proposals, &mut Scratch::default());
            let v = by_units(rbm.down(), &h, &draws, &mut Scratch::default());
            for r in (0..9).filter(|r| r % 3 != 0) {
                assert_eq!(
                    (&h.x[2 * r..][..2], &v.x[4 * r..][..4]),
                    (&h.y[2 * r..][..2], &v.y[4 * r..][..4])
                );
                assert_eq!(proposals[r].next, 0);
            }
            given = v;
        }
    }
}
