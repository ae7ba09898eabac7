#include <iostream>

#include "ir/element_type.h"

int main() {
  std::cout << "bf16 has " << hlokit::BitsOf(hlokit::ElementType::kBF16) << " bits\n";
  return hlokit::ElementTypeFromText("bf16") == hlokit::ElementType::kBF16 ? 0 : 1;
}
