// Everything for bucket tables except searches and growth. These kernels serve any width and layout: compiling one for each would
// cost more time than it saves.
#include "kernels.hpp"

namespace warpset {
namespace {

// Shape of any slots whose main chunks are of one type: `Layout` computes all by its general formulas.
template <class Main_>
struct AnyShape {
    static constexpr bool is_static = true;
    using Main = Main_;
    static constexpr u32 max_chunks = 256 * 4 / sizeof(Main) + 2;  // with both tails
    u32 width_words, words_a_slot, bytes_a_line;

    u32 width() const { return width_words; }
    u32 slot_words() const { return words_a_slot; }
    u32 line_bytes() const { return bytes_a_line; }
};

// Calls `use(layout)` with the layout that searches of these slots have by their shapes (bucket.hpp).
template <class Use>
void with_layout(u32 width, SlotsOf slots, Use use)
{
    const u32 line_bytes = slots.chunk_bytes == 16 && slots.words <= 2 ? 32 : 64;
    if (slots.words == 1) return use(Layout<AnyShape<u32>>{{width, slots.words, line_bytes}});
    if constexpr (has_chunks_of_16) {
        if (slots.chunk_bytes == 16 && slots.words >= 4) return use(Layout<AnyShape<u128>>{{width, slots.words, line_bytes}});
    }
    use(Layout<AnyShape<u64>>{{width, slots.words, line_bytes}});
}

u32 log2_of(u32 power) { return platform::lowest_bit(power); }

// The slots of a table. What a layout computes is kept.
template <class Main>
struct Slots {
    using OfClass = BucketTable<StaticShape<2, 8, 64>>;

    TableView view;
    u32 main_chunks, main_bytes, block_bytes, tail8_offset, tail4_offset, empty_classes;
    u32 bucket_log2, block_log2;  // slots of a bucket, and buckets of a block
    bool has_tail8, has_tail4, is_padded;

    Slots(const TableView& view, const Layout<AnyShape<Main>>& layout)
        : view(view), main_chunks(layout.main_chunks()), main_bytes(layout.main_bytes()), block_bytes(layout.block_bytes()),
          tail8_offset(layout.tail8_offset()), tail4_offset(layout.tail4_offset()), empty_classes(layout.empty_classes()),
          bucket_log2(log2_of(layout.slots_per_bucket())), block_log2(log2_of(layout.buckets_per_block())),
          has_tail8(layout.has_tail8()), has_tail4(layout.has_tail4()), is_padded(layout.slot_words() > view.width)
    {}

    u64 slots() const { return view.buckets << bucket_log2; }

    // First words of the EMPTY chunks of the slots of a class, and the whole chunk.
    u32 low_of_class(u32 empty_class) const { return view.empty[0] ^ (empty_class & (empty_classes - 1)); }
    u64 pair_of(u32 low) const { return low | static_cast<u64>(view.empty[1]) << 32; }
    Main main_of(u32 low) const
    {
        if constexpr (sizeof(Main) == 4) return low;
        else if constexpr (sizeof(Main) == 8) return pair_of(low);
        else return {pair_of(low), view.empty[2] | static_cast<u64>(view.empty[3]) << 32};
    }

    // Calls `use(address, empty)` for the chunks of a slot, one after another, while it returns true. Returns whether all did.
    template <class Use>
    bool with_chunks(u64 slot, Use use) const
    {
        const u64 bucket = slot >> bucket_log2;
        const u32 in_bucket = static_cast<u32>(slot) & ((1u << bucket_log2) - 1);
        const u32 in_block = static_cast<u32>(slot) & ((1u << bucket_log2 << block_log2) - 1);
        u8* const block = view.slots + (bucket >> block_log2) * block_bytes;
        const u32 low = low_of_class(OfClass::class_of_bucket(bucket) + in_bucket);
        Main* const main = reinterpret_cast<Main*>(block + in_block * static_cast<u64>(main_bytes));
        for (u32 chunk = 0; chunk < main_chunks; ++chunk)
            if (!use(main + chunk, main_of(low))) return false;
        if (has_tail8 && !use(reinterpret_cast<u64*>(block + tail8_offset + in_block * 8), pair_of(low))) return false;
        return !has_tail4 || use(reinterpret_cast<u32*>(block + tail4_offset + in_block * 4), low);
    }

    // Writes EMPTY to the slots of buckets `first .. last`.
    void clear(u64 first, u64 last) const
    {
        if (has_tail8 || has_tail4) {
            for (u64 slot = first << bucket_log2; slot < last << bucket_log2; ++slot)
                with_chunks(slot, [](auto* address, auto empty) {
                    *address = empty;
                    return true;
                });
            return;
        }
        // Without tails a bucket follows the other.
        const u32 slots = 1u << bucket_log2, chunks = main_chunks;
        Main* chunk = reinterpret_cast<Main*>(view.slots + first * block_bytes);
        for (u64 bucket = first; bucket < last; ++bucket) {
            const u32 class_of_bucket = OfClass::class_of_bucket(bucket);
            for (u32 slot = 0; slot < slots; ++slot) {
                const Main empty = main_of(low_of_class(class_of_bucket + slot));
                const Main two[2] = {empty, empty};
                u32 left = chunks;
                for (; left > 1; left -= 2, chunk += 2) __builtin_memcpy(chunk, two, sizeof(two));
                if (left != 0) *chunk++ = empty;
            }
        }
    }

    // Copies the words of a slot. Returns false if the slot does not hold a whole vector that is visible to this thread: every
    // chunk must be seen decided, because relaxed loads of different chunks may be seen out of order (BucketTable::is_complete).
    bool read_words(u64 slot, u32* words) const
    {
        return with_chunks(slot, [&](auto* address, auto empty) {
            const auto seen = platform::load_relaxed(address);
            __builtin_memcpy(words, &seen, sizeof(seen));
            words += sizeof(seen) / sizeof(u32);
            return !(seen == empty);
        });
    }

    // Copies the vector in a slot. Returns false if there is none.
    bool read(u64 slot, u32* vector) const
    {
        if (!is_padded) return read_words(slot, vector);
        u32 words[Layout<AnyShape<Main>>::most_slot_words];
        if (!read_words(slot, words)) return false;
        __builtin_memcpy(vector, words, view.width * sizeof(u32));
        return true;
    }
};

// `view`: of a bucket table, or of a tree table, whose view begins with that of its roots.
template <class Use>
void with_bucket_slots(const View& view, Use use)
{
    const TableView& table = view.as<TableView>();
    with_layout(table.width, view.slots, [&](const auto& layout) { use(Slots(table, layout)); });
}

}  // namespace

const MaintenanceKernels bucket_maintenance = {
    [](u32 width, SlotsOf slots, u32, Geometry* geometry) {
        with_layout(width, slots, [&](const auto& layout) { *geometry = geometry_of(layout, sizeof(TableView)); });
    },
    [](const View& view) {
        with_bucket_slots(view, [](const auto& slots) {
            // With the buckets that only pad the last block.
            const u64 blocks = (slots.view.buckets + (1u << slots.block_log2) - 1) >> slots.block_log2;
            const auto share = platform::Grid::share(blocks << slots.block_log2);
            slots.clear(share.first, share.last);
            if (platform::Grid::thread() == 0) *slots.view.stored = 0;
        });
    },
    [](const View& view, const u64* references, u64 count, u32* vectors, u64* invalid) {
        with_bucket_slots(view, [&](const auto& slots) {
            get_each(slots.slots(), slots.view.width, references, count, vectors, invalid,
                     [&](u64 slot, u32* vector) { return slots.read(slot, vector); });
        });
    },
    [](const View& view, u64 first, u64 last, u32* vectors, u64* references, u64* count) {
        with_bucket_slots(view, [&](const auto& slots) {
            export_each(slots.view.width, first, last, vectors, references, count,
                        [&](u64 slot, u32* vector) { return slots.read(slot, vector); });
        });
    },
    [](const View& view, u64 first, u64 last, u64* lengths, u32 bins, ProbeTotals* totals) {
        with_bucket_slots(view, [&](const auto& slots) {
            ProbeCounts counts(lengths, bins);
            for (u64 slot = first; slot < last; ++slot) {
                u32 words[256];
                if (!slots.read(slot, words)) continue;
                const TableView& table = slots.view;
                const u64 hash = hash_vector(table.seeds, table.width, table.hash_mask, WordVector{words});
                const u64 bucket = slot >> slots.bucket_log2;
                Probe probe = Probe::start(hash, table);
                u64 length = 1;
                while (probe.bucket != bucket && probe.advance(table)) ++length;
                counts.add(length);
            }
            counts.finish(totals);
        });
    },
};

}  // namespace warpset
