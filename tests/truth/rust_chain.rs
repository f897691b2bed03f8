// SPDX-License-Identifier: Apache-2.0
// Rust: generic functions, a closure behind `dyn Fn`, a trait object whose methods call each other. Names are printed without
// hashes and turbofish, blanks inside angle brackets as '_'. A fifth of the time the leaf does nothing, so that samples hit every
// instruction on the way there and back. Builds with rustc 1.63 and later; needs no crates.
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

static mut SINK: u64 = 0;
static TURNS: AtomicU64 = AtomicU64::new(0);
const NO_TURNS: u64 = 2;
const LONG: Duration = Duration::from_millis(4);

/// Keeps a value alive past a call, so that the call is not the last thing its function does.
#[inline(always)]
fn keep(x: u64) -> u64 {
    unsafe {
        let p = std::ptr::addr_of_mut!(SINK);
        std::ptr::write_volatile(p, std::ptr::read_volatile(p).wrapping_add(x));
        std::ptr::read_volatile(p)
    }
}

#[inline(never)]
fn leaf(x: u64) -> u64 {
    let mut y = x;
    for _ in 0..TURNS.load(Ordering::Relaxed) {
        y = y.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    }
    keep(y)
}

trait Shape {
    fn area(&self, x: u64) -> u64;
    fn twice(&self, x: u64) -> u64;
}

struct Disc(u64);
struct Square(u64);

impl Shape for Disc {
    #[inline(never)]
    fn area(&self, x: u64) -> u64 {
        keep(leaf(x + self.0) ^ x)
    }

    #[inline(never)]
    fn twice(&self, x: u64) -> u64 {
        keep(self.area(x + 1) ^ x)
    }
}

impl Shape for Square {
    #[inline(never)]
    fn area(&self, x: u64) -> u64 {
        keep(x * self.0)
    }

    fn twice(&self, x: u64) -> u64 {
        x + self.0
    }
}

#[inline(never)]
fn generic<T: Into<u64> + Copy>(shape: &dyn Shape, x: T) -> u64 {
    keep(shape.twice(x.into() & 0xffff) ^ x.into())
}

#[inline(never)]
fn call(f: &dyn Fn(u32) -> u64, x: u32) -> u64 {
    keep(f(x) ^ u64::from(x))
}

#[inline(never)]
fn outer(shape: &dyn Shape, x: u32) -> u64 {
    let deep = move |y: u32| keep(generic(shape, y) ^ u64::from(x));
    let flat = move |y: u32| keep(u64::from(x ^ y));
    // which one is known only while running, so that neither is inlined
    let f: &dyn Fn(u32) -> u64 = if keep(0) == u64::MAX { &flat } else { &deep };
    keep(call(f, x & 0xff) ^ u64::from(x))
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let seconds: f64 = args.get(1).map_or(3.0, |s| s.parse().expect("seconds"));
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let shape: Box<dyn Shape> = if args.len() < 100 { Box::new(Disc(1)) } else { Box::new(Square(2)) };

    println!(
        "chain rust_chain::main rust_chain::outer rust_chain::call rust_chain::outer::{{closure}} rust_chain::generic \
         <rust_chain::Disc_as_rust_chain::Shape>::twice <rust_chain::Disc_as_rust_chain::Shape>::area rust_chain::leaf"
    );
    // without optimization everything is a call
    println!("calls * core::* <* std::* alloc::*\ncalls rust_chain::main clock_gettime __rust_* libc: *\nsweep\nfull 60");
    std::io::stdout().flush().expect("stdout");
    let mut x = 0;
    let mut turns = 10_000;
    while Instant::now() < end {
        let start = Instant::now();
        TURNS.store(turns, Ordering::Relaxed);
        x = outer(&*shape, x) as u32;
        TURNS.store(NO_TURNS, Ordering::Relaxed);
        let took = start.elapsed();
        if took < LONG {
            turns *= 2;
        }
        let after = Instant::now();
        while after.elapsed() < took / 4 {
            for _ in 0..200 {
                x = outer(&*shape, x) as u32;
            }
        }
    }
}
