#include "ggmlx/graph/call.h"

namespace ggmlx {

std::string_view describe(Fault fault) {
    switch (fault) {
        case Fault::None:
            return "no fault";
        case Fault::NonFinite:
            return "a value is NaN or infinite";
        case Fault::BadIndex:
            return "an id, slot or block lies outside its table";
    }
    return "unknown fault";
}

}  // namespace ggmlx
