#pragma once
// GPT-2's way to spell bytes as visible characters, so that a vocabulary of strings can hold any bytes: printable
// Latin-1 stands for itself, the other 68 bytes are U+0100 and on, in order ("Ġ" is the space). Source: Radford et al.
// 2019, "Language Models are Unsupervised Multitask Learners", and its published encoder.

#include <optional>
#include <string>
#include <string_view>

namespace llm {

/// Appends the spelling of the bytes.
void append_byte_level(std::string& out, std::string_view bytes);

/// The bytes a spelling stands for; nothing if it has a character that stands for none.
std::optional<std::string> from_byte_level(std::string_view spelling);

}  // namespace llm
