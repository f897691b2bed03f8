// SPDX-License-Identifier: Apache-2.0
// Generic code, closures and iterators, inlined into each other.
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

trait Shape {
    fn area(&self) -> f64;
}

struct Square(f64);
struct Circle(f64);

impl Shape for Square {
    fn area(&self) -> f64 {
        self.0 * self.0
    }
}

impl Shape for Circle {
    fn area(&self) -> f64 {
        self.0 * self.0 * 3.14
    }
}

#[inline(never)]
fn words(text: &str) -> String {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for word in text.split(|c: char| !c.is_alphabetic()).filter(|w| !w.is_empty()) {
        *counts.entry(word).or_insert(0) += 1;
    }
    let sorted: BTreeMap<_, _> = counts.into_iter().collect();
    let mut out = String::new();
    for (name, count) in &sorted {
        write!(out, "{name}={count:>3} ").unwrap();
    }
    out
}

fn main() {
    let shapes: Vec<Box<dyn Shape>> = vec![Box::new(Square(2.0)), Box::new(Circle(1.0))];
    let total: f64 = shapes.iter().map(|s| s.area()).sum();
    let mut numbers: Vec<u64> = (0..1000u64).map(|i| i.wrapping_mul(6364136223846793005)).collect();
    numbers.sort_by_key(|n| n % 977);
    println!("{} {:?} {}", words("the quick fox and the lazy dog"), total, numbers[7]);
}
