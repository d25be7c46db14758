// Runs the kernel of a rank. `MODEL` is its text, with the next-state functions of a model.

#include "warpset/platform.cuh"

#include <thread>

#include MODEL

namespace {

struct Arguments {
    warpset::View view;
    const unsigned* tables;
    explore::u64* order;
    unsigned* offers;
    explore::Search* search;
    explore::Limits limits;
};

void expand(const void* argument)
{
    const Arguments& given = *static_cast<const Arguments*>(argument);
    expand_states(given.view, given.tables, given.order, given.offers, given.search, given.limits);
}

}  // namespace

extern "C" {

void simulated_describe(unsigned* threads, unsigned* shared_bytes, explore::u64* most_steps)
{
    describe(threads, shared_bytes);
    count_steps(most_steps);
}

void simulated_expand(const unsigned* states, const unsigned* tables, explore::u64* order, unsigned* offers, explore::Search* search,
                      const explore::Limits* limits, unsigned blocks)
{
    const Arguments arguments{{states}, tables, order, offers, search, *limits};
    std::vector<std::thread> running;
    for (unsigned number = 0; number < blocks; ++number)
        running.emplace_back([&arguments, number, blocks] {
            simulated::run_block(number, blocks, explore::Chosen::threads, expand, &arguments);
        });
    for (std::thread& block : running) block.join();
}
}
