//! Rows of the report as text, which the figures of each part give.

/// Names and values. An empty name stands between groups.
pub type Rows = Vec<(&'static str, String)>;
