// SPDX-License-Identifier: Apache-2.0
#include "pjrt/client/processes.h"

#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "ir/core/str_cat.h"
#include "pjrt/client/topology.h"
#include "pjrt/values/arguments.h"
#include "pjrt/values/error.h"

namespace hlokit::pjrt {
namespace {

// How long a process waits for the others to make their clients, and to connect.
constexpr int kMeetSeconds = 300;
constexpr double kConnectSeconds = 60;

PJRT_Error* MakeError(PJRT_Error_Code code, const char* message, size_t size) {
  return NewError(StatusOf(code, message, size));
}

// Frees the error of a callback, which may be null.
absl::Status Consume(PJRT_Error* error) {
  if (error == nullptr) return absl::OkStatus();
  const absl::Status status = StatusOf(error->code, error->message.data(), error->message.size());
  error->functions->destroy(error);
  return status;
}

absl::Status Put(const KeyValueStore& store, const std::string& key, const std::string& value) {
  PJRT_CallbackError make_error = MakeError;
  PJRT_KeyValuePutCallback_Args args = {};
  args.struct_size = sizeof(args);
  args.key = key.data();
  args.key_size = key.size();
  args.value = value.data();
  args.value_size = value.size();
  args.callback_error = &make_error;
  args.user_arg = store.put_arg;
  return Consume(store.put(&args));
}

absl::StatusOr<std::string> Get(const KeyValueStore& store, const std::string& key) {
  PJRT_CallbackError make_error = MakeError;
  PJRT_KeyValueGetCallback_Args args = {};
  args.struct_size = sizeof(args);
  args.key = key.data();
  args.key_size = key.size();
  args.timeout_in_ms = kMeetSeconds * 1000;
  args.callback_error = &make_error;
  args.user_arg = store.get_arg;
  if (absl::Status status = Consume(store.get(&args)); !status.ok()) return status;
  std::string value(TextOf(args.value, args.value_size));
  if (args.value_deleter != nullptr) args.value_deleter(args.value);
  return value;
}

// Returns how many clients have been made for this process before: all processes make the n-th one together.
int64_t NumberOfClient(int64_t process) {
  static auto* const mutex = new std::mutex();
  static auto* const made = new std::map<int64_t, int64_t>();
  const std::lock_guard<std::mutex> lock(*mutex);
  return (*made)[process]++;
}

// What a process tells the others.
struct Card {
  std::string version, platform, device, partition, address;

  std::string Text() const { return StrCat(version, "\n", platform, "\n", device, "\n", partition, "\n", address); }
  static std::optional<Card> Read(const std::string& text) {
    const std::vector<std::string> lines = absl::StrSplit(text, '\n');
    if (lines.size() != 5) return std::nullopt;
    return Card{lines[0], lines[1], lines[2], lines[3], lines[4]};
  }
};

absl::Status CheckSame(const char* what, const std::string& own, const std::string& other, size_t process) {
  if (own == other) return absl::OkStatus();
  return absl::FailedPreconditionError(StrCat("process ", static_cast<int64_t>(process), " has the ", what, " ", other,
                                              ", and this one ", own, "; all have the same"));
}

// Divides the devices of all processes among these.
absl::Status Divide(const std::vector<Card>& cards, size_t self, Processes* processes) {
  const Card& own = cards[self];
  constexpr std::string_view kCpu = "cpu:";
  if (std::string_view(own.device).starts_with(kCpu)) {
    for (size_t p = 0; p < cards.size(); ++p) {
      int64_t count = 0;
      if (!std::string_view(cards[p].device).starts_with(kCpu) ||
          !absl::SimpleAtoi(cards[p].device.substr(kCpu.size()), &count)) {
        return CheckSame("device", own.device, cards[p].device, p);
      }
      processes->process_of.insert(processes->process_of.end(), static_cast<size_t>(count), static_cast<int>(p));
    }
    processes->device = StrCat(std::string(kCpu), static_cast<int64_t>(processes->process_of.size()));
    return absl::OkStatus();
  }
  for (size_t p = 0; p < cards.size(); ++p) {
    if (absl::Status s = CheckSame("device", own.device, cards[p].device, p); !s.ok()) return s;
  }
  const absl::StatusOr<std::unique_ptr<PJRT_TopologyDescription>> topology = CreateTopology(own.platform, own.device);
  if (!topology.ok()) return topology.status();
  const size_t devices = (*topology)->descriptions.size();
  if (devices % cards.size() != 0) {
    return absl::InvalidArgumentError(StrCat("the ", static_cast<int64_t>(devices), " devices of ", own.device,
                                             " cannot be divided among ", static_cast<int64_t>(cards.size()),
                                             " processes"));
  }
  for (size_t d = 0; d < devices; ++d) {
    processes->process_of.push_back(static_cast<int>(d / (devices / cards.size())));
  }
  processes->device = own.device;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Processes> MeetProcesses(const KeyValueStore& store, const ClientConfig& config,
                                        const std::string& device) {
  if (store.get == nullptr || store.put == nullptr) {
    return absl::InvalidArgumentError("num_nodes: several processes take the callbacks of a key-value store");
  }
  const std::string prefix = StrCat("hlokit/", NumberOfClient(config.node_id), "/process/");
  Processes processes;
  absl::StatusOr<std::unique_ptr<interp::ProcessNetwork>> network = interp::ProcessNetwork::Listen();
  if (!network.ok()) return network.status();
  processes.network = *std::move(network);
  const auto self = static_cast<size_t>(config.node_id);
  const Card own = {PlatformVersion(), config.platform, device, StrCat(config.partition_index),
                    processes.network->address()};
  if (absl::Status s = Put(store, StrCat(prefix, config.node_id), own.Text()); !s.ok()) return s;
  std::vector<Card> cards;
  std::vector<std::string> addresses;
  for (int64_t p = 0; p < config.num_nodes; ++p) {
    const absl::StatusOr<std::string> text = Get(store, StrCat(prefix, p));
    if (!text.ok()) {
      return absl::Status(text.status().code(),
                          StrCat("process ", p, " has not made its client: ", std::string(text.status().message())));
    }
    const std::optional<Card> card = Card::Read(*text);
    if (!card) return absl::InternalError(StrCat("process ", p, " has another version of the plugin"));
    const auto number = static_cast<size_t>(p);
    if (absl::Status s = CheckSame("version", own.version, card->version, number); !s.ok()) return s;
    if (absl::Status s = CheckSame("platform", own.platform, card->platform, number); !s.ok()) return s;
    cards.push_back(*card);
    addresses.push_back(card->address);
    if (!absl::SimpleAtoi(card->partition, &processes.partition_of.emplace_back())) processes.partition_of.back() = -1;
  }
  if (absl::Status s = Divide(cards, self, &processes); !s.ok()) return s;
  if (absl::Status s = processes.network->Connect(static_cast<int>(self), addresses, kConnectSeconds); !s.ok())
    return s;
  return processes;
}

}  // namespace hlokit::pjrt
