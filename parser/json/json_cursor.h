// SPDX-License-Identifier: Apache-2.0
// Pull parser for JSON on top of TextCursor. Stores nothing, so memory does not grow with the text; members of an
// object come in the order of the text, and a value that is needed later is skipped and found again.
//
// Invalid JSON is reported once and stops the cursor: broken(). A value of an unexpected type is reported too, but can
// be skipped.
//
// Not simdjson, which tokenizes 5 MB in 2.2 ms instead of 5.8 of the 55 ms of a whole module: it takes neither comments
// nor the lone surrogates of invalid UTF-8, and its DOM reports one error without an offset. RapidJSON takes 10 ms, and
// its SAX parser can neither pause nor seek.
#ifndef HLOKIT_PARSER_JSON_JSON_CURSOR_H_
#define HLOKIT_PARSER_JSON_JSON_CURSOR_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "parser/text/text_cursor.h"

namespace hlokit {

struct JsonString {
  // With escapes resolved. Points into the text or, if there are escapes, into the cursor: then it is valid until the
  // next string is read, or for a key until the next key.
  std::string_view value;
  SourceRange range;  // including the quotes
  bool escaped = false;
};

class JsonCursor {
 public:
  // As TextCursor. Values nested deeper than `max_nesting` are errors.
  JsonCursor(std::string_view text, DiagnosticSink* sink, uint32_t base, int64_t max_nesting)
      : in_(text, sink, base), max_nesting_(max_nesting) {}

  TextCursor& in() { return in_; }
  bool broken() const { return broken_; }

  // Returns the first character of the next value: '{', '[', '"', a digit, ...
  char Peek() { return in_.Peek(); }
  uint32_t Offset() { return in_.Offset(); }
  SourceRange Next() { return in_.Next(); }
  void Seek(uint32_t offset) { in_.Seek(offset); }

  // Consume a value of their type, or report that `what` ("a shape") is expected here.
  bool String(JsonString* s, std::string_view what);
  bool Int(int64_t* value, std::string_view what);
  bool Bool(bool* value, std::string_view what);
  bool Number(float* value, std::string_view what) { return AnyNumber(value, what); }
  bool Number(double* value, std::string_view what) { return AnyNumber(value, what); }
  // Consumes any value.
  bool Skip();
  // Reports that `what` is expected here. Returns false.
  bool Expected(std::string_view what);

  // Returns the source offset of character `index` of `s.value`. Reads the string again.
  uint32_t OffsetIn(const JsonString& s, size_t index);

 private:
  friend class JsonObject;
  friend class JsonArray;

  template <typename T>
  bool AnyNumber(T* value, std::string_view what);
  // Reads a string, into `scratch` if it has escapes. Requires: the cursor is at the opening quote.
  bool ReadString(JsonString* s, std::string* scratch);
  // Appends one character or escape at `p`, before the closing quote, to `out`. Returns false if it is malformed.
  static bool Decode(const char*& p, const char* end, std::string* out);
  // Advances to the next element of a list that ends in `close`. Returns true at its start, false at the end and after
  // an error.
  bool NextElement(char close, bool* first);
  bool Break(DiagnosticKind kind, SourceRange range, std::string message, std::string hint = "") {
    broken_ = true;
    return in_.Error(kind, range, std::move(message), std::move(hint));
  }
  // Reads a key and the colon after it.
  bool ReadKey(JsonString* key);
  bool SkipOne(std::string* open);

  TextCursor in_;
  int64_t max_nesting_;
  bool broken_ = false;
  std::string key_;
  std::string value_;
};

// Iterates over the members of an object:
//   JsonObject object(cursor, "an instruction");
//   JsonString key;
//   while (object.Next(&key)) {}  // read the value
//   if (!object.ok()) return;
class JsonObject {
 public:
  JsonObject(JsonCursor& in, std::string_view what) : in_(in), ok_(in.Peek() == '{' || in.Expected(what)) {
    if (ok_) in.in_.TryConsume('{');
  }
  // Advances to the value of the next member. Returns false at the end of the object, and if there is none.
  bool Next(JsonString* key) { return ok_ && in_.NextElement('}', &first_) && in_.ReadKey(key); }
  // Returns false if the value is not an object or invalid JSON.
  bool ok() const { return ok_ && !in_.broken(); }

 private:
  JsonCursor& in_;
  bool ok_;
  bool first_ = true;
};

// Iterates over the elements of an array:
//   JsonArray array(cursor, "a list of shapes");
//   while (array.Next()) {}  // read an element
//   if (!array.ok()) return;
class JsonArray {
 public:
  JsonArray(JsonCursor& in, std::string_view what) : in_(in), ok_(in.Peek() == '[' || in.Expected(what)) {
    if (ok_) in.in_.TryConsume('[');
  }
  bool Next() { return ok_ && in_.NextElement(']', &first_); }
  // As Next and ok, for arrays of a fixed size: another element is required, or none.
  bool Need(std::string_view what) { return Next() || (ok() && in_.Expected(what)); }
  bool End() { return Next() ? in_.Expected("`]`") : ok(); }
  bool ok() const { return ok_ && !in_.broken(); }

 private:
  JsonCursor& in_;
  bool ok_;
  bool first_ = true;
};

}  // namespace hlokit

#endif  // HLOKIT_PARSER_JSON_JSON_CURSOR_H_
