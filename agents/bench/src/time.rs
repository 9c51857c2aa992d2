//! Timing two things against each other on a machine that is doing other work too: rounds alternate between them, what
//! counts is the processor time of this one thread, and the medians are compared. On a GPU, which computes while the
//! processor goes on, what counts is the clock, until all is computed.

use std::hint::black_box;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use tensorlink_tensor::Device;

/// A round repeats its contestant for about this long.
const ROUND: Duration = Duration::from_millis(20);

/// Median times of one call of each contestant over so many rounds, both on one device.
pub(crate) fn race<A, B>(
    device: Device,
    rounds: usize,
    mut ours: impl FnMut() -> A,
    mut theirs: impl FnMut() -> B,
) -> (Duration, Duration) {
    fn timed<T>(device: Device, f: &mut impl FnMut() -> T, calls: u32) -> Duration {
        let all = || {
            for _ in 0..calls {
                black_box(f());
            }
        };
        once(device, all) / calls
    }
    let calls = |once: Duration| (ROUND.as_nanos() / once.as_nanos().max(1)).clamp(1, 10_000) as u32;
    timed(device, &mut ours, 1);
    timed(device, &mut theirs, 1);
    let (calls_ours, calls_theirs) = (calls(timed(device, &mut ours, 1)), calls(timed(device, &mut theirs, 1)));
    let mut times: (Vec<_>, Vec<_>) = Default::default();
    for _ in 0..rounds {
        times.0.push(timed(device, &mut ours, calls_ours));
        times.1.push(timed(device, &mut theirs, calls_theirs));
    }
    (median(&mut times.0), median(&mut times.1))
}

/// Time of one call on a device: of this thread on a processor, or until a GPU has computed it.
pub(crate) fn once<T>(device: Device, f: impl FnOnce() -> T) -> Duration {
    if device == Device::Cpu {
        let start = time_of(ClockId::ThreadCPUTime);
        black_box(f());
        return time_of(ClockId::ThreadCPUTime) - start;
    }
    by_the_clock(device, f)
}

/// Time of one call by the clock, on however many threads, until the device has computed it.
pub(crate) fn by_the_clock<T>(device: Device, f: impl FnOnce() -> T) -> Duration {
    device.synchronize();
    let start = Instant::now();
    black_box(f());
    device.synchronize();
    start.elapsed()
}

/// Processor time of one call, on all threads of this process.
#[allow(dead_code, reason = "a bench that includes this file need not use all of it")]
pub(crate) fn once_everywhere<T>(f: impl FnOnce() -> T) -> Duration {
    let start = time_of(ClockId::ProcessCPUTime);
    black_box(f());
    time_of(ClockId::ProcessCPUTime) - start
}

/// The middle one; the later of two. Nothing of nothing.
pub(crate) fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn time_of(clock: ClockId) -> Duration {
    let now = clock_gettime(clock);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

#[allow(dead_code, reason = "a bench that includes this file need not use all of it")]
pub(crate) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[allow(dead_code, reason = "a bench that includes this file need not use all of it")]
pub(crate) fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
