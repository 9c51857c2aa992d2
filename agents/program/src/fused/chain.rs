//! Operators in a row, each of which takes what those before it give, or what comes from outside.

use std::collections::BTreeMap;

use tensorlink_types::operator::Operand;
use tensorlink_types::{Operator, Source};

/// Where a link takes an operand from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taken {
    /// What the chain is given, by number.
    Outside(usize),
    /// What an earlier link gives, by its place in the chain.
    Link(usize),
}

/// An operator of a chain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Link<T> {
    /// The operator, or its place in a program.
    pub operator: T,
    /// Its operands.
    pub operands: Vec<Taken>,
    /// Whether somebody reads its output beside the chain.
    pub kept: bool,
}

/// Links, each of which takes from outside and from those before it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chain<T> {
    links: Vec<Link<T>>,
}

impl<T> Chain<T> {
    /// The links, first to last.
    pub fn links(&self) -> &[Link<T>] {
        &self.links
    }
}

impl<'a> Chain<&'a Operator> {
    /// What its operators say of the operands from outside, by number.
    pub fn operands(&self) -> Vec<&'a Operand> {
        let mut outside = BTreeMap::new();
        for link in &self.links {
            for (taken, named) in link.operands.iter().zip(&link.operator.operands) {
                if let Taken::Outside(number) = taken {
                    outside.insert(*number, named);
                }
            }
        }
        outside.into_values().collect()
    }
}

/// A chain of a program's operators.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Planned {
    chain: Chain<usize>,
    places: Vec<usize>,
    outside: Vec<Source>,
}

impl Planned {
    /// The operators in some places, in the program's order; `readers` says how often each output of the program
    /// is read.
    pub(super) fn new(operators: &[Operator], places: Vec<usize>, readers: &[u32]) -> Self {
        let mut outside = Vec::new();
        let mut within = vec![0u32; places.len()];
        let mut links = Vec::with_capacity(places.len());
        for place in &places {
            let mut from = |source: Source| {
                let inner = match source {
                    Source::Output(read) => places.binary_search(&(read as usize)).ok(),
                    _ => None,
                };
                if let Some(count) = inner.and_then(|link| within.get_mut(link)) {
                    *count = count.saturating_add(1);
                }
                inner.map_or_else(
                    || {
                        let known = outside.iter().position(|known| *known == source);
                        Taken::Outside(known.unwrap_or_else(|| {
                            outside.push(source);
                            outside.len().saturating_sub(1)
                        }))
                    },
                    Taken::Link,
                )
            };
            let operands = operators.get(*place).map_or(&[][..], |operator| &operator.operands);
            let operands = operands.iter().map(|operand| from(operand.source)).collect();
            links.push(Link { operator: *place, operands, kept: false });
        }
        for (link, within) in links.iter_mut().zip(within) {
            link.kept = readers.get(link.operator) != Some(&within);
        }
        Self { chain: Chain { links }, places, outside }
    }

    /// Where its operators are.
    pub(super) fn places(&self) -> &[usize] {
        &self.places
    }

    /// Where those are whose outputs it gives.
    pub(super) fn kept(&self) -> impl Iterator<Item = usize> {
        self.chain.links.iter().filter(|link| link.kept).map(|link| link.operator)
    }

    /// What it takes from outside, by number.
    pub(super) fn operands(&self) -> impl Iterator<Item = Source> {
        self.outside.iter().copied()
    }

    pub(super) fn in_program<'a>(&self, operators: &'a [Operator]) -> Option<Chain<&'a Operator>> {
        let link = |link: &Link<usize>| {
            let operator = operators.get(link.operator)?;
            Some(Link { operator, operands: link.operands.clone(), kept: link.kept })
        };
        Some(Chain { links: self.chain.links.iter().map(link).collect::<Option<_>>()? })
    }
}
