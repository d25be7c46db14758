// Operations of a table, their outcomes, and the reference of a stored vector.
#pragma once

#include "warpset/platform.cuh"

namespace warpset {

// Operation on a vector: find it and put it if it is absent, or only find it.
enum class Operation { FindOrPut, Find };

// The values cross to Rust as bytes (src/layout/outcome.rs). Pending: the search continues. No kernel that finished writes it.
enum class Outcome : u8 { Pending = 0, New = 1, Seen = 2, Full = 3, Absent = 4 };

struct Found {
    Outcome outcome;
    u64 reference;  // the slot's number; no_reference if Full or Absent
};

constexpr u64 no_reference = ~0ull;

}  // namespace warpset
