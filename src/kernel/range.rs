//! Settings that must lie between two limits.

use std::fmt::Display;

/// The value of a setting if it lies between `min` and `max`, both included. `Err` is a message
/// that names the setting and both limits.
pub fn within<T: PartialOrd + Display>(name: &str, value: T, min: T, max: T) -> Result<T, String> {
    if value >= min && value <= max {
        Ok(value)
    } else {
        Err(format!("{name} is {value} and must be between {min} and {max}"))
    }
}
