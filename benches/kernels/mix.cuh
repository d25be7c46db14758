// SplitMix64 (Steele, Lea and Flood 2014): a bijection with well-mixed bits. The text of kernels that use it follows.
__device__ unsigned long long mix(unsigned long long x)
{
    x += 0x9E3779B97F4A7C15ull;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}

