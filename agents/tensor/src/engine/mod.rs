//! The engine: checks an operator, its operands and their device, and hands it to the chosen kernels.
//!
//! | module | what lives there |
//! |---|---|
//! | `mod` | [`TorchEngine`]: checks and dispatch |
//! | `choice` | which kernels it takes |
//! | `self_test` | what a kernel must reproduce |

mod choice;
mod self_test;

use std::sync::Arc;

use tensorlink_num::operators::{
    Gather, HeadMix, HeadScores, Heads as HeadProduct, MatMul, Sample, ScaledMatMul, ShiftedMatMul,
};
use tensorlink_num::philox::draw_below;
use tensorlink_num::{CheckedOperator, Tensor};
#[cfg(target_arch = "x86_64")]
use tensorlink_program::FusedAttention;
use tensorlink_program::engine::one_by_one;
use tensorlink_program::{Chain, Engine, EngineError, StepContext};
use tensorlink_types::Operator;
use tensorlink_types::operator::Operand;

#[cfg(target_arch = "x86_64")]
use crate::attention::Attention;
use crate::chain::Run;
use crate::checked::decode;
use crate::device::Device;
use crate::host::block::Precision;
use crate::kernels::{ElementKernel, Kernels};
use crate::matmul::{Heads, Product, ProductDispatch, Scales};
use crate::simd::Simd;
#[cfg(target_arch = "x86_64")]
use crate::sum::Sum;
use crate::tensor::{TorchTensor, device as failed};
use crate::{cuda, hardware, host, memory, torch};

/// [`Engine`] on libtorch, exact.
#[derive(Clone, Debug)]
pub struct TorchEngine {
    device: Device,
    kernels: Kernels,
    simd: Simd,
    /// Threads of a large matrix product on the host.
    threads: usize,
    passed_over: Arc<[EngineError]>,
}

impl TorchEngine {
    /// An engine with the fastest kernels that pass their self-test on the device; takes a fraction of a second. On the
    /// host, large matrix products use as many threads as libtorch is set to now (`OMP_NUM_THREADS`,
    /// `tch::set_num_threads`).
    ///
    /// # Errors
    /// [`EngineError::Device`] if there is no such device, or it computes wrongly.
    pub fn new(device: Device) -> Result<Self, EngineError> {
        Self::reach(device)?;
        let (kernels, passed_over) = choice::choose(device)?;
        let engine = Self { passed_over: passed_over.into(), ..Self::unchecked(device, kernels)? };
        self_test::operators(&engine)?;
        Ok(engine)
    }

    /// An engine with given kernels, after their self-test.
    ///
    /// # Errors
    /// [`EngineError::Device`] if there is no such device, or one of the kernels is not exact on it.
    pub fn with_kernels(device: Device, kernels: Kernels) -> Result<Self, EngineError> {
        Self::reach(device)?;
        self_test::products(device, kernels, tensorlink_types::Width::I8)?;
        self_test::products(device, kernels, tensorlink_types::Width::I16)?;
        let engine = Self::unchecked(device, kernels)?;
        self_test::operators(&engine)?;
        Ok(engine)
    }

    /// An engine whose kernels nothing was found out about yet.
    fn unchecked(device: Device, kernels: Kernels) -> Result<Self, EngineError> {
        if device != Device::Cpu && kernels.elements != ElementKernel::Torch {
            return Err(EngineError::Device(format!("host kernels cannot compute on {device}")));
        }
        let simd = if kernels.elements == ElementKernel::Host { Simd::detect() } else { Simd::BASELINE };
        let threads = usize::try_from(tch::get_num_threads()).unwrap_or(1);
        Ok(Self { device, kernels, simd, threads, passed_over: Arc::default() })
    }

    fn reach(device: Device) -> Result<(), EngineError> {
        match device {
            Device::Cpu => Ok(()),
            Device::Cuda(index) => cuda::reach(index),
        }
    }

    /// Where the engine computes.
    pub const fn device(&self) -> Device {
        self.device
    }

    /// The kernels it uses.
    pub const fn kernels(&self) -> Kernels {
        self.kernels
    }

    /// Why each faster kernel is not used: the processor lacks what it needs, or it failed its self-test.
    pub fn passed_over(&self) -> &[EngineError] {
        &self.passed_over
    }

    /// What its loops on the host run with.
    pub(crate) const fn simd(&self) -> Simd {
        self.simd
    }

    /// Bytes free on the device now: what a worker can offer.
    ///
    /// # Errors
    /// [`EngineError::Device`] if the system does not tell.
    pub fn memory(&self) -> Result<u64, EngineError> {
        memory::free(self.device)
    }

    /// The model of the processor or of the GPU, as its maker calls it.
    ///
    /// # Errors
    /// [`EngineError::Device`] if the GPU's driver does not tell.
    pub fn hardware(&self) -> Result<String, EngineError> {
        hardware::name(self.device)
    }

    fn execute_by_libtorch(
        &self,
        checked: &CheckedOperator,
        operator: &Operator,
        operands: &[&TorchTensor],
        context: &StepContext,
    ) -> Result<TorchTensor, EngineError> {
        let data = operands.iter().map(|t| t.data()).collect::<Result<Vec<_>, _>>()?;
        let row = operands.first().map_or(1, |a| a.ty().row()) as i64;
        let tokens = operands.first().and_then(|a| a.ty().dims().iter().rev().nth(1)).map_or(1, |t| i64::from(*t));
        let on = torch::Torch { operands: &data, row, tokens, limit: operator.output.limit(), context };
        torch::wrap_own(&operator.output, torch::execute(checked, &on), &data)
    }

    /// Checks that operands are those that an operator names, and lie on the device.
    fn accept<'a>(
        &self,
        operator: &Operator,
        named: impl ExactSizeIterator<Item = &'a Operand>,
        given: &[&TorchTensor],
    ) -> Result<(), EngineError> {
        if given.len() != named.len() {
            let (due, given) = (named.len(), given.len());
            return Err(EngineError::Malformed(format!("{operator}: takes {due} operands, got {given}")));
        }
        for (i, (named, given)) in named.zip(given).enumerate() {
            if named.ty != *given.ty() {
                return Err(EngineError::Malformed(format!("{operator}: operand {i} given is {}", given.ty())));
            }
            if given.device() != self.device.into() {
                let place = given.device();
                return Err(EngineError::Malformed(format!("{operator}: operand {i} lies on {place:?}: import it")));
            }
        }
        Ok(())
    }

    fn dispatch(&self) -> ProductDispatch {
        ProductDispatch { kernels: self.kernels, simd: self.simd, threads: self.threads }
    }

    /// Rule N-24.
    fn sample(
        &self,
        operator: &Operator,
        data: &TorchTensor,
        sample: &Sample,
        context: &StepContext,
    ) -> Result<TorchTensor, EngineError> {
        // The operator's check keeps row numbers within 32 bits.
        let place = |i: u64| sample.first_row.wrapping_add(i as u32);
        let row = |i: u64| draw_below(&context.job_key, place(i), context.step, sample.population);
        let drawn: Vec<i64> = (0..operator.output.elements() / sample.width).map(|i| row(i) as i64).collect();
        let index = tch::Tensor::f_from_slice(&drawn).and_then(|t| t.f_to_device(self.device.into()));
        let data = data.data()?;
        let out = index.and_then(|index| data.f_index_select(0, &index)).map_err(failed)?;
        TorchTensor::wrap(operator.output.clone(), out)
    }
}

impl Engine for TorchEngine {
    type Tensor = TorchTensor;

    fn describe(&self) -> String {
        format!("libtorch through tch on {}: {}, threads {}", self.device, self.kernels, self.threads)
    }

    fn import(&self, tensor: &Tensor) -> Result<TorchTensor, EngineError> {
        TorchTensor::import(tensor, self.device.into())
    }

    fn export(&self, tensor: &TorchTensor) -> Result<Tensor, EngineError> {
        tensor.export()
    }

    fn execute(
        &self,
        operator: &Operator,
        operands: &[&TorchTensor],
        context: &StepContext,
    ) -> Result<TorchTensor, EngineError> {
        let checked = decode(operator)?;
        self.accept(operator, operator.operands.iter(), operands)?;
        let by_torch = self.kernels.elements == ElementKernel::Torch;
        let multiply = |a, b, offset, scales, shift| {
            self.dispatch().product(&Product { a, b, offset, scales }, shift as i32, &operator.output)
        };
        let of_heads = |which, operands, by: &HeadProduct, shift| {
            self.dispatch().heads(which, operands, (by.heads as usize, shift as i32), &operator.output)
        };
        match (checked, operands) {
            (CheckedOperator::MatMul(MatMul { shift, .. }), &[a, b]) => multiply(a, b, 0, Scales::None, shift),
            (CheckedOperator::ScaledMatMul(ScaledMatMul { product, shift }), &[a, b, r, c]) => {
                multiply(a, b, product.offset as usize, Scales::Rows(r, c), shift)
            }
            (CheckedOperator::ShiftedMatMul(ShiftedMatMul { product, shift }), &[a, b, s, c]) => {
                multiply(a, b, product.offset as usize, Scales::Shifts(s, c), shift)
            }
            (CheckedOperator::HeadScores(HeadScores { heads, shift }), &[q, k]) => {
                of_heads(Heads::Scores, (q, k), &heads, shift)
            }
            (CheckedOperator::HeadMix(HeadMix { heads, shift }), &[p, v]) => {
                of_heads(Heads::Mix, (p, v), &heads, shift)
            }
            (CheckedOperator::Gather(Gather { shift, .. }), &[table, scale, ids]) if by_torch => {
                let to = Precision { shift: shift as i32, limit: operator.output.limit() };
                let operands = (table.data()?, scale.data()?, ids.data()?);
                torch::wrap(&operator.output, torch::embeddings::gather(operands, operator.output.rows() as i64, to))
            }
            (CheckedOperator::Sample(sample), &[data]) => self.sample(operator, data, &sample, context),
            (checked, _) if by_torch => self.execute_by_libtorch(&checked, operator, operands, context),
            (checked, _) => host::execute(self.simd, &checked, operator, operands, context),
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn attend(
        &self,
        attention: &FusedAttention<&Operator>,
        operands: [&TorchTensor; 4],
        context: &StepContext,
    ) -> Result<TorchTensor, EngineError> {
        let [.., last] = attention.operators();
        let own = self.kernels.own(false).filter(|_| self.kernels.elements != ElementKernel::Torch);
        let fused = own.map(|own| Attention::parse(attention, own)).transpose()?.flatten();
        let (Some(fused), Some(named)) = (fused, attention.operands()) else {
            return one_by_one::attend(self, attention, operands, context);
        };
        self.accept(last, named.into_iter(), &operands)?;
        fused.compute(self.dispatch(), operands)
    }

    fn chain(
        &self,
        chain: &Chain<&Operator>,
        operands: &[&TorchTensor],
        context: &StepContext,
    ) -> Result<Vec<TorchTensor>, EngineError> {
        let Some(last) = chain.links().last().filter(|_| self.kernels.elements != ElementKernel::Torch) else {
            return one_by_one::chain(self, chain, operands, context);
        };
        self.accept(last.operator, chain.operands().into_iter(), operands)?;
        #[cfg(target_arch = "x86_64")]
        if let Some(sum) = Sum::parse(chain, operands)?
            && let Some(sum) = sum.compute(self.dispatch(), &last.operator.output)?
        {
            return Ok(vec![sum]);
        }
        match Run::parse(chain)? {
            Some(run) => run.compute(self.simd, operands),
            None => one_by_one::chain(self, chain, operands, context),
        }
    }
}
