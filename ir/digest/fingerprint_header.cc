// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "ir/core/text_writer.h"
#include "ir/digest/fingerprint_internal.h"
#include "ir/text/original_value.h"

namespace hlokit {
namespace {

// First words of the components.
enum HeaderTag : uint64_t {
  kModuleTag = 100,
  kAliasTag,
  kDonorTag,
  kUnknownTag,
  kEntryLayoutTag,
  kShardingTag,
  kFrontendTag,
  kAnnotationTag,
  kModuleScheduleTag,
};

void AddStrings(const std::vector<StringId>& strings, ContentDigests* contents, DigestWords* words) {
  words->Add(strings.size());
  for (StringId s : strings) words->Add(contents->OfString(s));
}

// Stack frames count through the metadata that refers to them.
void AddAnnotations(const Module& module, DigestWords* words) {
  const ModuleHeader& header = module.header();
  words->Add(kAnnotationTag);
  // These hold names, so their text is hashed.
  std::string text;
  {
    TextWriter out(&text);
    PrintOriginRecoveryTable(out, module.context(), header.origin_recovery_table);
    PrintDebugAttributes(out, module.context(), header.debug_attributes);
  }
  words->Add(DigestOf(text));
}

}  // namespace

void AddHeader(const Module& module, const FingerprintOptions& options, ContentDigests* contents, DigestWords* words) {
  const ModuleHeader& header = module.header();
  const Context& context = module.context();
  words->Add(kModuleTag);
  words->Add(kFingerprintVersion);
  words->Add(uint64_t{options.layout} | uint64_t{options.sharding} << 1 | uint64_t{options.metadata} << 2 |
             uint64_t{options.frontend_attributes} << 3 | uint64_t{options.schedule} << 4);
  words->Add(static_cast<uint64_t>(header.replica_count));
  words->Add(static_cast<uint64_t>(header.num_partitions));
  words->Add(header.alias_passthrough_params);
  words->Add(kAliasTag);
  words->Add(header.input_output_alias.size());
  for (const InputOutputAlias& alias : header.input_output_alias) {
    words->AddList(context.list(alias.output_index));
    words->Add(static_cast<uint64_t>(alias.parameter));
    words->AddList(context.list(alias.parameter_index));
    words->Add(alias.must_alias);
  }
  words->Add(kDonorTag);
  words->Add(header.buffer_donor.size());
  for (const BufferDonor& donor : header.buffer_donor) {
    words->Add(static_cast<uint64_t>(donor.parameter));
    words->AddList(context.list(donor.parameter_index));
  }
  words->Add(kUnknownTag);
  AddStrings(header.unknown_attributes, contents, words);
  if (options.layout && header.entry_layout.has_value()) {
    // Without layouts the entry computation has the same information.
    words->Add(kEntryLayoutTag);
    words->Add(header.entry_layout->parameters.size());
    for (Shape shape : header.entry_layout->parameters) words->Add(contents->OfShape(shape, true));
    if (header.entry_layout->result.valid()) words->Add(contents->OfShape(header.entry_layout->result, true));
  }
  if (options.sharding) {
    words->Add(kShardingTag);
    for (ListId list :
         {header.allow_spmd_sharding_propagation_to_parameters, header.allow_spmd_sharding_propagation_to_output}) {
      words->Add(list.valid());
      words->AddList(context.list(list));
    }
  }
  if (options.frontend_attributes) {
    const ListId list = header.frontend_attributes;
    words->Add(kFrontendTag);
    words->Add(list.valid());
    if (list.valid()) words->Add(contents->OfPrinted({Attr::kFrontendAttributes, list.value}));
  }
  if (options.metadata) AddAnnotations(module, words);
  if (options.schedule) {
    words->Add(kModuleScheduleTag);
    words->Add(header.is_scheduled);
  }
}

}  // namespace hlokit
