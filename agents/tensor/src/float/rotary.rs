//! Rotary positions (Su et al. 2021), halves convention: element i of a head turns together with element i + width/2.

use tch::{Device, Kind, TchError, Tensor};
use tensorlink_model::{Architecture, Positions, Rotary};

/// How the layers of a model rotate consecutive places, if they do.
#[derive(Debug)]
pub(super) struct Rotations {
    /// In layers whose tokens see all.
    all: Option<Rotation>,
    /// In the others.
    local: Option<Rotation>,
}

impl Rotations {
    /// Those of places 0 to `places`.
    pub(super) fn new(architecture: &Architecture, places: usize, options: (Kind, Device)) -> Result<Self, TchError> {
        let all = match &architecture.positions {
            Positions::Rotary(rotary) => Some(Rotation::new(rotary, places, options)?),
            Positions::Learned { .. } => None,
        };
        let local =
            architecture.local.as_ref().map(|local| Rotation::new(&local.rotary, places, options)).transpose()?;
        Ok(Self { all, local })
    }

    /// Those of some of the places, without a copy.
    pub(super) fn narrow(&self, first: usize, places: usize) -> Result<Self, TchError> {
        let part =
            |rotation: &Option<Rotation>| rotation.as_ref().map(|rotation| rotation.narrow(first, places)).transpose();
        Ok(Self { all: part(&self.all)?, local: part(&self.local)? })
    }

    /// That of a layer whose tokens do not see all, or of one whose do.
    pub(super) const fn of(&self, local: bool) -> Option<&Rotation> {
        if local { self.local.as_ref() } else { self.all.as_ref() }
    }
}

/// Cosines and sines of consecutive places.
#[derive(Debug)]
pub(super) struct Rotation {
    /// `[places, 1, width]`.
    cosines: Tensor,
    /// `[places, 1, width]`, those of the first half negated.
    sines: Tensor,
}

impl Rotation {
    fn new(rotary: &Rotary, places: usize, (kind, device): (Kind, Device)) -> Result<Self, TchError> {
        // Angles of late places need more than the 24 bits of a float.
        let frequencies = Tensor::f_from_slice(&rotary.frequencies())?.f_view([1, 1, -1])?;
        let places = Tensor::f_arange(places as i64, (Kind::Double, Device::Cpu))?.f_view([-1, 1, 1])?;
        let angles = places.f_mul(&frequencies)?;
        let amplitude = rotary.amplitude();
        let (cosines, sines) = (angles.f_cos()?.f_mul_scalar(amplitude)?, angles.f_sin()?.f_mul_scalar(amplitude)?);
        let both = |first: &Tensor, second: &Tensor| {
            Tensor::f_cat(&[first, second], -1)?.f_to_kind(kind)?.f_to_device(device)?.f_contiguous()
        };
        Ok(Self { cosines: both(&cosines, &cosines)?, sines: both(&sines.f_neg()?, &sines)? })
    }

    fn narrow(&self, first: usize, places: usize) -> Result<Self, TchError> {
        let part = |x: &Tensor| x.f_narrow(0, first as i64, places as i64);
        Ok(Self { cosines: part(&self.cosines)?, sines: part(&self.sines)? })
    }

    /// Rotates the heads `[places, heads, head width]`.
    pub(super) fn apply(&self, x: &Tensor) -> Result<Tensor, TchError> {
        let (width, whole) = (last(&self.cosines), last(x));
        let half = width / 2;
        let swapped = Tensor::f_cat(&[x.f_narrow(-1, half, half)?, x.f_narrow(-1, 0, half)?], -1)?;
        let turned = x.f_narrow(-1, 0, width)?.f_mul(&self.cosines)?.f_addcmul_(&swapped, &self.sines)?;
        if width == whole { Ok(turned) } else { Tensor::f_cat(&[turned, x.f_narrow(-1, width, whole - width)?], -1) }
    }
}

fn last(x: &Tensor) -> i64 {
    x.size().last().copied().unwrap_or(0)
}
