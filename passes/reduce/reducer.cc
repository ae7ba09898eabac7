// SPDX-License-Identifier: Apache-2.0
#include "passes/reduce/reducer.h"

namespace hlokit::reduce {

Reducers AllReducers(const RecordedValues* values) {
  Reducers reducers;
  AddCutReducers(&reducers);
  AddControlFlowReducers(&reducers);
  AddValueReducers(values, &reducers);
  AddPassReducers(&reducers);
  AddSizeReducers(&reducers);
  AddAnnotationReducers(&reducers);
  return reducers;
}

}  // namespace hlokit::reduce
