//! Several pools, one address.

use std::fmt;
use std::net::IpAddr;

use super::{Range, RangeError};

/// The pools out of which a container gets one address: not empty, of one family, disjoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeSet(pub Vec<Range>);

impl RangeSet {
    /// The pools as a set.
    ///
    /// # Errors
    /// There is none, they are of both families, or they share addresses.
    pub fn new(ranges: Vec<Range>) -> Result<Self, RangeError> {
        let Some(first) = ranges.first() else {
            return Err(RangeError::EmptySet);
        };
        if ranges.iter().any(|range| !range.is_family_of(first.start)) {
            return Err(RangeError::MixedFamilies);
        }
        for (index, range) in ranges.iter().enumerate() {
            if let Some(other) = ranges[index + 1..].iter().find(|other| range.overlaps(other)) {
                return Err(RangeError::Overlap(Box::new([range.clone(), other.clone()])));
            }
        }
        Ok(Self(ranges))
    }

    /// True if the pools are IPv4.
    pub fn is_ipv4(&self) -> bool {
        self.0.first().is_some_and(|range| range.start.is_ipv4())
    }

    /// True if one of the pools holds the address.
    pub fn contains(&self, ip: IpAddr) -> bool {
        self.0.iter().any(|range| range.contains(ip))
    }

    /// The pool that holds the address.
    ///
    /// # Errors
    /// None does.
    pub fn range_of(&self, ip: IpAddr) -> Result<&Range, RangeError> {
        self.0.iter().find(|range| range.contains(ip)).ok_or_else(|| RangeError::NotInSet(ip, self.clone()))
    }

    /// True if the two sets share an address.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.0.iter().any(|range| other.0.iter().any(|other| range.overlaps(other)))
    }

    /// How many addresses of all pools are allocatable.
    pub fn size(&self) -> u128 {
        self.0.iter().fold(0, |sum: u128, range| sum.saturating_add(range.size()))
    }
}

impl fmt::Display for RangeSet {
    /// `10.0.0.1-10.0.0.6,10.0.1.1-10.0.1.6`, as host-local prints it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, range) in self.0.iter().enumerate() {
            write!(f, "{}{range}", if index == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}
