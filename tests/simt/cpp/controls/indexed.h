// Indexed tables in which one part of the publication of rows is wrong on purpose, and a correct one. The other parts are the
// real headers.
#pragma once

#include "controls/frame.h"
#include "script.h"

namespace controls {

enum class Flaw {
    None,
    PublishedFirst,       // the slot names the row before the row is written
    PublishedRelaxed,     // the claim does not release
    ReadWithoutAcquire,   // the slot is seen by a relaxed load
    LostWithoutAcquire,   // the claim that is lost does not acquire
    NextWithoutComparing, // a lane that loses a claim goes on to the next slot, even if its own vector has won
    // In the following, all accesses of slots are relaxed, and fences order them, as with a warp:
    Fenced,               // nothing is wrong
    FencedBeforeWriting,  // the fence before the claim comes before the row is written
    FencedAfterClaiming,  // the fence comes after the claim
    ReadWithoutFence,  // no fence between the load of a slot and the comparison with its row
    LostWithoutFence      // no fence between a claim that is lost and the comparison
};

template <Flaw flaw>
struct Indexed {
    using Real = warpset::IndexedTable<2, 64>;
    Real real;

    explicit Indexed(const warpset::IndexedView& view) : real(Real::of(view)) {}

    u32 width() const { return real.width(); }
    u32 word(u64 row, u32 word) const { return real.word(row, word); }
    bool holds(u64 row) const { return real.holds(row); }
    bool read_word(u64 row, u32 word, u32& value) const { return real.read_word(row, word, value); }

    static constexpr bool fenced = flaw >= Flaw::Fenced;
    static constexpr Order seeing = fenced || flaw == Flaw::ReadWithoutAcquire ? Order::Relaxed : Order::Acquire;
    static constexpr Order claiming = fenced                             ? Order::Relaxed
                                      : flaw == Flaw::PublishedRelaxed     ? Order::Acquire
                                      : flaw == Flaw::LostWithoutAcquire ? Order::Release
                                                                         : Order::AcquireRelease;

    static void fence_if(bool wanted)
    {
        if (wanted) warpset::platform::fence_acquire_release();
    }

    warpset::Found find(const warpset::WordVector& vector) const
    {
        const u64 tag = real.tag_of(real.hash(vector));
        for (u32 index = 0; index < real.layout.slots_per_bucket(); ++index) {
            const u64 seen = load(real.slot_at(0, index), seeing);
            if (seen == Real::empty) break;
            fence_if(fenced && flaw != Flaw::ReadWithoutFence);
            if (real.fits(seen, tag) && real.rows.equals(real.row_of(seen), vector))
                return {warpset::Outcome::Seen, real.row_of(seen)};
        }
        return {warpset::Outcome::Absent, no_reference};
    }

    warpset::Found find_or_put(const warpset::WordVector& vector) const
    {
        const u64 tag = real.tag_of(real.hash(vector));
        Real::Lane lane;
        warpset::Found found{warpset::Outcome::Full, no_reference};
        for (u32 index = 0; index < real.layout.slots_per_bucket() && found.outcome == warpset::Outcome::Full; ++index) {
            u64* slot = real.slot_at(0, index);
            u64 seen = load(slot, seeing);
            if (seen == Real::empty) {
                if (lane.row == warpset::no_row) lane.row = real.rows.take();
                fence_if(flaw == Flaw::FencedBeforeWriting);
                if (flaw != Flaw::PublishedFirst) real.rows.write(lane.row, vector);
                fence_if(fenced && flaw != Flaw::FencedBeforeWriting && flaw != Flaw::FencedAfterClaiming);
                seen = compare_and_swap(slot, Real::empty, real.name(tag, lane.row), claiming);
                if (seen == Real::empty) {
                    if (flaw == Flaw::PublishedFirst) real.rows.write(lane.row, vector);
                    found = {warpset::Outcome::New, lane.row};
                    lane.row = warpset::no_row;
                    continue;
                }
                if (flaw == Flaw::NextWithoutComparing) continue;
                fence_if(fenced && flaw != Flaw::LostWithoutFence);
            } else {
                fence_if(fenced && flaw != Flaw::ReadWithoutFence);
            }
            if (real.fits(seen, tag) && real.rows.equals(real.row_of(seen), vector))
                found = {warpset::Outcome::Seen, real.row_of(seen)};
        }
        lane.finish(real);
        warpset::platform::count_relaxed(real.view.stored, found.outcome == warpset::Outcome::New);
        return found;
    }
};

template <Flaw flaw>
void run_indexed(const void* argument)
{
    const auto& script = *static_cast<const ::Script*>(argument);
    run_script(Indexed<flaw>(script.view.indexed), script, Order::Release, Order::Acquire);
}

}  // namespace controls
