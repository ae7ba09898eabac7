#include "tools/hlo_run/sweep.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "interp/tpu/memory_plan.h"
#include "interp/tpu/simulator.h"
#include "ir/str_cat.h"
#include "tools/cli/device_machine.h"
#include "tools/hlo_run/device_options.h"

namespace hlokit::run {

namespace {

std::string Fixed(double value, int digits) {
  char buffer[64];
  std::snprintf(buffer, sizeof(buffer), "%.*f", digits, value);
  return buffer;
}

}  // namespace

std::optional<std::string> Sweep(const SimulationFlags& flags, const Module& original, const Module& module,
                                 const tpu::KernelPlan& plan, cli::Diagnostics* diagnostics) {
  const size_t equal = flags.sweep.find('=');
  const std::string what = flags.sweep.substr(0, equal);
  if (equal == std::string::npos || equal + 1 == flags.sweep.size()) {
    diagnostics->ShowError("--sweep", StrCat("'", flags.sweep, "': expected WHAT=VALUE,VALUE,..."), cli::kUsage);
    return std::nullopt;
  }
  std::string table = "        step us      device us     busy %   HBM GiB  fits  bound by        ";
  StrAppend(&table, what, "\n");
  size_t at = equal + 1;
  while (at <= flags.sweep.size()) {
    const size_t comma = std::min(flags.sweep.find(',', at), flags.sweep.size());
    const std::string value = flags.sweep.substr(at, comma - at);
    at = comma + 1;
    SimulationFlags one = flags;
    if (what == "device") {
      one.device = value;
    } else if (what == "chips") {
      one.device = StrCat(cli::SplitDevice(flags.device).first, ":", value);
    } else {
      one.scale.push_back(StrCat(what, "=", value));
    }
    const std::optional<tpu::SimulationOptions> options = OptionsFor(one, original, diagnostics);
    if (!options) return std::nullopt;
    const tpu::Simulation simulation = tpu::Simulate(module, plan, *options);
    const tpu::MemoryPlan memory = tpu::PlanMemory(options->machine, module, plan, simulation.parts);
    const double busy = simulation.device_seconds > 0 ? 100 * simulation.core_busy / simulation.device_seconds : 0;
    const auto cell = [&table](const std::string& text, size_t width) {
      table.append(width > text.size() ? width - text.size() : 0, ' ');
      table.append(text);
    };
    cell(Fixed(simulation.step_seconds * 1e6, 2), 15);
    cell(Fixed(simulation.device_seconds * 1e6, 2), 15);
    cell(Fixed(busy, 1), 11);
    cell(Fixed(static_cast<double>(memory.peak_bytes) / (1 << 30), 2), 10);
    cell(memory.fits() ? "yes" : "no", 6);
    std::string bound(tpu::NameOf(simulation.bound));
    bound.resize(std::max<size_t>(bound.size(), 14), ' ');
    StrAppend(&table, "  ", bound, "  ", value, "\n");
  }
  return table;
}

}  // namespace hlokit::run
