#include "ggmlx/placement/rounds.h"

#include <algorithm>
#include <set>

namespace ggmlx {
namespace {

/// What the steps of one round read and write.
class Round {
  public:
    bool accepts(const PlanStep& step) const {
        return !meets(written_, step.inputs) && !meets(written_, step.outputs) && !meets(read_, step.outputs);
    }
    void add(const PlanStep& step) {
        read_.insert(step.inputs.begin(), step.inputs.end());
        written_.insert(step.outputs.begin(), step.outputs.end());
    }

  private:
    static bool meets(const std::set<int32_t>& values, const std::vector<int32_t>& others) {
        return std::any_of(others.begin(), others.end(), [&](int32_t v) { return values.count(v) > 0; });
    }
    std::set<int32_t> read_, written_;
};

}  // namespace

void number_rounds(Plan& plan) {
    std::vector<int32_t> last(plan.devices.size(), -1);
    for (Segment& segment : plan.segments) {
        int32_t& number = last[static_cast<size_t>(segment.device)];
        Round round;
        for (size_t i = 0; i < segment.steps.size(); ++i) {
            if (i == 0 || !round.accepts(segment.steps[i])) {
                round = Round();
                ++number;
            }
            round.add(segment.steps[i]);
            segment.steps[i].round = number;
        }
    }
}

}  // namespace ggmlx
