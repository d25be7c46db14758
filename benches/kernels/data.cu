// Random vectors made in device memory: thesis 4.2 (Bergsma 2019).
using u32 = unsigned;
using u64 = unsigned long long;

// Vector i is a random one of `pool` vectors: count / pool is the nominal duplication. Words have `values` values (0: any), equal
// at all positions: internal duplication. The top bit of each word is clear and the first word is not 0, as the thesis' table
// requires.
extern "C" __global__ void make_vectors(u32* vectors, u64 count, u32 width, u64 pool, u32 values, u64 seed)
{
    for (u64 at = blockIdx.x * (u64)blockDim.x + threadIdx.x; at < count * width; at += gridDim.x * (u64)blockDim.x) {
        u64 member = __umul64hi(mix(at / width + seed), pool);
        u32 word = (u32)(mix((member * width + at % width) ^ (seed << 40)) >> 33);
        if (values != 0) word = (u32)(mix((word % values) ^ (seed << 41)) >> 33) | 1;
        vectors[at] = at % width == 0 ? word | 1 : word;
    }
}

// numbers[i] = the slot number of vector i, with the top bit set if the vector was new.
extern "C" __global__ void mark_new(u64* numbers, const unsigned char* outcomes, u64 count, u32 keep_new)
{
    for (u64 at = blockIdx.x * (u64)blockDim.x + threadIdx.x; at < count; at += gridDim.x * (u64)blockDim.x) {
        u64 is_new = keep_new && outcomes[at] == 1;
        numbers[at] = (numbers[at] & ~(1ull << 63)) | is_new << 63;
    }
}
