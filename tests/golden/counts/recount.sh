#!/usr/bin/env bash
# Recounts tests/golden/counts/counts.json from the transcripts themselves.
#   recount.sh DATA_FOLDER        DATA_FOLDER holds claude-code/**/*.jsonl
#   diff <(./recount.sh DATA_FOLDER) counts.json
# Each count is one jq program over the whole file read with `jq -s`, which also takes
# glued records ({...}{...} on one line). Needs jq >= 1.6 and bash only.
set -euo pipefail
export LC_ALL=C
data=${1:?usage: recount.sh DATA_FOLDER}

names=(); declare -A prog note
count() { names+=("$1"); prog[$1]=$2; note[$1]=$3; }

count records 'length' \
  "JSON records in the file (glued lines hold two)."

count user_typed_texts '[.[] | select(.type=="user" and .isMeta!=true and .isCompactSummary!=true and .isSidechain!=true) | .message.content | if type=="string" then . else (.[]? | select(.type=="text") | .text) end | gsub("<system-reminder>[\\s\\S]*?</system-reminder>";"") | select(test("\\S")) | select(test("^\\s*(<(command-name|command-message|command-args|local-command-stdout|local-command-stderr|local-command-caveat|bash-input|bash-stdout|bash-stderr|task-notification|user-prompt-submit-hook)>|\\[Request interrupted by user|This session is being continued from a previous conversation|Caveat: The messages below were generated)")|not)] | length' \
  "Words the human typed or pasted as a message to the agent; one per string or text block. Out: harness wrappers, interruption marks, compaction summaries, isMeta, sidechain prompts (the agent wrote them), tool results. A message sent twice (interrupted, sent again) counts twice. Not here, but counted on their own below: slash commands, shell lines typed with !, messages typed while the agent worked (queue-operation), answers to the agent's questions, rejections. Every candidate text was looked at; no text block in these files carries an appended reminder."

count slash_commands '[.[] | select(.type=="user" and .isMeta!=true and .isSidechain!=true) | .message.content | if type=="string" then . else (.[]? | select(.type=="text") | .text) end | select(test("^\\s*<command-(name|message)>"))] | length' \
  "Slash commands: the human chose them, but the record is a harness wrapper, so not a typed text."

count slash_commands_with_args '[.[] | select(.type=="user" and .isMeta!=true and .isSidechain!=true) | .message.content | if type=="string" then . else (.[]? | select(.type=="text") | .text) end | select(test("^\\s*<command-(name|message)>")) | select(test("<command-args>\\s*[^<\\s]"))] | length' \
  "Those whose <command-args> is not empty: typed words inside a wrapper. One of them is a whole sentence; an observer that counts it as typed is one higher."

count bash_inputs '[.[] | select(.type=="user" and .isMeta!=true) | .message.content | if type=="string" then . else (.[]? | select(.type=="text") | .text) end | select(test("^\\s*<bash-input>"))] | length' \
  "Shell lines typed with !. Decision: not a typed text (addressed to the shell), counted here."

count queued_typed_texts '[.[] | select(.type=="queue-operation" and .operation=="enqueue" and (.content|type)=="string") | .content | select(test("^\\s*(\\{|<task-notification>)")|not)] | length' \
  "Messages typed while the agent worked. They stand only in queue-operation records and in no user record, so user_typed_texts lacks them. Task notifications (JSON) left out."

count interruptions '[.[] | select(.type=="user" and .isMeta!=true) | .message.content | if type=="string" then . else (.[]? | select(.type=="text") | .text) end | select(test("^\\s*\\[Request interrupted by user"))] | length' \
  "Interruption marks written by the harness as user text (marks inside tool results not counted)."

count compact_summaries '[.[] | select(.type=="user" and .isCompactSummary==true)] | length' \
  "User records that hold a compaction summary."

count assistant_messages '[.[] | select(.type=="assistant") | .message.id] | unique | length' \
  "Distinct message.id over all assistant records (one message is split over several records); main chain and sidechain together, synthetic ones included."

count assistant_messages_main '[.[] | select(.type=="assistant" and .isSidechain!=true) | .message.id] | unique | length' \
  "The same, main chain only."

count assistant_messages_sidechain '[.[] | select(.type=="assistant" and .isSidechain==true) | .message.id] | unique | length' \
  "The same, sidechain only. Sub-agent messages inside progress records are not counted anywhere."

count assistant_messages_synthetic '[.[] | select(.type=="assistant" and .message.model=="<synthetic>") | .message.id] | unique | length' \
  "Of assistant_messages: written by the harness, not by a model."

count tool_calls '[.[] | select(.type=="assistant") | .message.content | arrays | .[] | select(.type=="tool_use")] | length' \
  "tool_use blocks, main chain and sidechain; no id occurs twice in these files, so blocks = distinct ids."

count tool_calls_sidechain '[.[] | select(.type=="assistant" and .isSidechain==true) | .message.content | arrays | .[] | select(.type=="tool_use")] | length' \
  "Of tool_calls: in the sidechain."

count tool_results '[.[] | select(.type=="user") | .message.content | arrays | .[] | select(.type=="tool_result")] | length' \
  "tool_result blocks, main chain and sidechain (toolUseResult is a second copy, not counted)."

count tool_results_sidechain '[.[] | select(.type=="user" and .isSidechain==true) | .message.content | arrays | .[] | select(.type=="tool_result")] | length' \
  "Of tool_results: in the sidechain."

count tool_errors '[.[] | select(.type=="user") | .message.content | arrays | .[] | select(.type=="tool_result" and .is_error==true)] | length' \
  "tool_result blocks with is_error true; rejections are among them."

count rejections '[.[] | select(.type=="user") | .message.content | arrays | .[] | select(.type=="tool_result") | .content | (if type=="string" then . else ([.[]? | .text? // empty] | join("\n")) end) | select(startswith("The user doesn\u0027t want to proceed with this tool use"))] | length' \
  "Of tool_errors: calls the human refused."

count rejections_with_words '[.[] | select(.type=="user") | .message.content | arrays | .[] | select(.type=="tool_result") | .content | (if type=="string" then . else ([.[]? | .text? // empty] | join("\n")) end) | select(startswith("The user doesn\u0027t want to proceed with this tool use") and test("the user said:"))] | length' \
  "Of rejections: followed by a reason. In these files the reason is the harness's own text for declining questions, not free words of the human."

count question_answers '[.[] | select(.type=="user") | .message.content | arrays | .[] | select(.type=="tool_result") | .content | strings | select(startswith("User has answered your questions"))] | length' \
  "Tool results that hold the human's answers to the agent's questions (some typed freely); tool results, not typed texts."

count compactions '[.[] | select(.type=="system" and .subtype=="compact_boundary")] | length' \
  "system/compact_boundary records."

count images '[.[] | .message?.content? | arrays | .[] | if .type=="image" then . elif .type=="tool_result" then (.content | arrays | .[] | select(.type=="image")) else empty end] | length' \
  "Image blocks in message content, directly or inside a tool_result; the copies in toolUseResult are not counted again."

cd "$data"
{
  find claude-code -type f -name '*.jsonl' -size +0 | sort | while IFS= read -r f; do
    for n in "${names[@]}"; do
      v=$(jq -s "${prog[$n]}" "$f")
      jq -n --arg f "$f" --arg n "$n" --argjson v "$v" '{files: {($f): {($n): $v}}}'
    done
  done
  for n in "${names[@]}"; do
    jq -n --arg n "$n" --arg p "${prog[$n]}" --arg t "${note[$n]}" '{how: {($n): {jq: $p, note: $t}}}'
  done
} | jq -s 'reduce .[] as $x ({}; . * $x)'
