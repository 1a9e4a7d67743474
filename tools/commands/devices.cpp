// ggmlx devices: what placement rules can name on this machine.

#include <fmt/core.h>

#include "src/session/devices.h"
#include "tools/args.h"
#include "tools/commands/commands.h"
#include "tools/json_text.h"

namespace cli {

int run_devices(std::span<const std::string> arguments) {
    Common common;
    Args args("devices", "Lists the devices of this machine, by the names that placement rules (-ot) use.",
              "  ggmlx devices\n  ggmlx devices --json\n");
    args.common(common);
    if (!args.parse(arguments)) return 0;
    auto list = nlohmann::ordered_json::array();
    for (const auto& device : llm::make_devices({})) {
        list.push_back(
            {{"name", device->name()}, {"description", device->description()}, {"free_bytes", device->free_bytes()}});
        if (!common.json)
            fmt::print("{:<6} {}; {} free\n", device->name(), device->description(), human_bytes(device->free_bytes()));
    }
    if (common.json) fmt::print("{}\n", json_line(list));
    return 0;
}

}  // namespace cli
