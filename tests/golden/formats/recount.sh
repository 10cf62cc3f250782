#!/usr/bin/env bash
# Recounts tests/golden/formats/counts.json from the session files themselves.
#   recount.sh DATA_FOLDER [FILE]    DATA_FOLDER holds claude-code/, codex/, …; FILE, below it, is that one alone
#   diff <(./recount.sh DATA_FOLDER) counts.json
# Each count is one jq program over the whole file read with `jq -s` (glued records are taken too; a document is the one
# element of the list). `null`: the source does not say. README.md says what is counted. Needs jq >= 1.6 and bash only.
set -euo pipefail
export LC_ALL=C
data=${1:?usage: recount.sh DATA_FOLDER [FILE]}
only=${2:-}

declare -A prog
names=(typed messages texts calls results errors usage images compactions subagents)
count() { prog[$1.$2]=$3; }

count claude-code typed '[.[] | select(.type=="user" and .isMeta!=true and .isCompactSummary!=true and .isSidechain!=true) | .message.content | if type=="string" then . else (.[]? | select(.type=="text") | .text) end | gsub("<system-reminder>[\\s\\S]*?</system-reminder>";"") | select(test("\\S")) | select(test("^\\s*(<(command-name|command-message|command-args|local-command-stdout|local-command-stderr|local-command-caveat|bash-input|bash-stdout|bash-stderr|task-notification|user-prompt-submit-hook)>|\\[Request interrupted by user|This session is being continued from a previous conversation|Caveat: The messages below were generated)")|not)] | length'
count claude-code messages '[.[] | select(.type=="assistant") | .message.id] | unique | length'
count claude-code texts '[.[] | select(.type=="assistant") | .uuid as $u | .message.content | arrays | to_entries[] | select(.value.type=="text" and .value.text!="") | [$u, .key]] | unique | length'
count claude-code calls '[.[] | select(.type=="assistant") | .message.content | arrays | .[] | select(.type=="tool_use")] | length'
count claude-code results '[.[] | select(.type=="user") | .message.content | arrays | .[] | select(.type=="tool_result")] | length'
count claude-code errors '[.[] | select(.type=="user") | .message.content | arrays | .[] | select(.type=="tool_result" and .is_error==true)] | length'
count claude-code usage '[.[] | select(.type=="assistant" and .message.usage!=null) | .message.id] | unique | length'
count claude-code images '[.[] | .message?.content? | arrays | .[] | if .type=="image" then . elif .type=="tool_result" then (.content | arrays | .[] | select(.type=="image")) else empty end] | length'
count claude-code compactions '[.[] | select(.type=="system" and .subtype=="compact_boundary")] | length'
count claude-code subagents '([.[] | select(.isSidechain==true) | .uuid]) as $side | [.[] | select(.isSidechain==true) | select((.parentUuid==null) or (.parentUuid as $p | $side | index($p) | not))] | length'

count codex typed '[.[] | select(.type=="event_msg" and .payload.type=="user_message")] | length'
count codex messages 'null'
count codex texts '[.[] | select(.type=="response_item" and .payload.type=="message" and .payload.role=="assistant") | .payload.content[] | select(.type=="output_text" and .text!="")] | length'
count codex calls '[.[] | select(.type=="response_item" and (.payload.type | test("^(function|custom_tool|local_shell|web_search|tool_search)_call$")))] | length'
count codex results '[.[] | select(.type=="response_item" and (.payload.type | test("_output$")))] | length'
count codex errors '[.[] | select(.type=="response_item" and (.payload.type | test("_output$"))) | .payload.output | tostring | select(test("^(Chunk ID: [^\\n]*\\n)?(Wall time: [^\\n]*\\n)?(Process exited with|Exit) code:? *[1-9]|\"exit_code\": ?[1-9]"))] | length'
count codex usage '[.[] | select(.type=="event_msg" and .payload.type=="token_count") | .payload.info | objects | .total_token_usage] | unique | length'
count codex images '[.[] | select(.type=="response_item") | .payload.content | arrays | .[] | select(.type=="input_image")] | length'
count codex compactions '[.[] | select(.type=="compacted")] | length'
count codex subagents '[.[] | select(.type=="session_meta") | .payload.source | objects | select(has("subagent"))] | length'

count opencode typed '[.[0].messages[] | select(.info.role=="user") | .parts[] | select(.type=="text" and .synthetic!=true and .ignored!=true)] | length'
count opencode messages '[.[0].messages[] | select(.info.role=="assistant")] | length'
count opencode texts '[.[0].messages[] | select(.info.role=="assistant") | .parts[] | select(.type=="text" and .text!="")] | length'
count opencode calls '[.[0].messages[].parts[] | select(.type=="tool")] | length'
count opencode results '[.[0].messages[].parts[] | select(.type=="tool" and (.state.status=="completed" or .state.status=="error"))] | length'
count opencode errors '[.[0].messages[].parts[] | select(.type=="tool" and .state.status=="error")] | length'
count opencode usage '[.[0].messages[].parts[] | select(.type=="step-finish" and .tokens!=null)] | length'
count opencode images '[.[0].messages[].parts[] | select(.type=="file" and ((.mime // "") | startswith("image/"))), (select(.type=="tool") | .state.attachments[]? | select((.mime // "") | startswith("image/")))] | length'
count opencode compactions '[.[0].messages[].parts[] | select(.type=="compaction")] | length'
count opencode subagents '0'

count pi typed '[.[] | select(.type=="message" and .message.role=="user") | .message.content | if type=="string" then . else (.[] | select(.type=="text") | .text) end] | length'
count pi messages '[.[] | select(.type=="message" and .message.role=="assistant" and (.message.content | length) > 0)] | length'
count pi texts '[.[] | select(.type=="message" and .message.role=="assistant") | .message.content[] | select(.type=="text" and .text!="")] | length'
count pi calls '[.[] | select(.type=="message" and .message.role=="assistant") | .message.content[] | select(.type=="toolCall")] | length'
count pi results '[.[] | select(.type=="message" and .message.role=="toolResult")] | length'
count pi errors '[.[] | select(.type=="message" and .message.role=="toolResult" and .message.isError==true)] | length'
count pi usage '[.[] | select(.type=="message" and .message.role=="assistant" and .message.usage.input + .message.usage.output + .message.usage.cacheRead + .message.usage.cacheWrite > 0)] | length'
count pi images '[.[] | select(.type=="message") | .message.content | arrays | .[] | select(.type=="image")] | length'
count pi compactions '[.[] | select(.type=="compaction")] | length'
count pi subagents '0'

count copilot-cli typed '[.[] | select(.type=="user.message" and .data.content!="")] | length'
count copilot-cli messages '[.[] | select(.type=="assistant.message") | .data.messageId] | unique | length'
count copilot-cli texts '[.[] | select(.type=="assistant.message" and .data.content!="")] | length'
count copilot-cli calls '[.[] | select(.type=="assistant.message") | .data.toolRequests[]?] | length'
count copilot-cli results '[.[] | select(.type=="tool.execution_complete")] | length'
count copilot-cli errors '[.[] | select(.type=="tool.execution_complete" and .data.success==false)] | length'
count copilot-cli usage '[.[] | select(.type=="assistant.message" and .data.outputTokens!=null)] | length'
count copilot-cli images '[.[] | select(.type=="user.message") | .data.attachments[]? | select((.mimeType // .type // "") | test("^image"))] | length'
count copilot-cli compactions '[.[] | select(.type=="session.compaction_complete")] | length'
count copilot-cli subagents '[.[] | select(.type=="subagent.started")] | length'

count gemini-cli typed '[.[0].messages[] | select(.type=="user")] | length'
count gemini-cli messages '[.[0].messages[] | select(.type=="gemini")] | length'
count gemini-cli texts '[.[0].messages[] | select(.type=="gemini" and .content!="")] | length'
count gemini-cli calls '[.[0].messages[].toolCalls[]?] | length'
count gemini-cli results '[.[0].messages[].toolCalls[]? | select((.result | length) > 0)] | length'
count gemini-cli errors '[.[0].messages[].toolCalls[]? | select(.status=="error" or .result[0].functionResponse.response.error!=null)] | length'
count gemini-cli usage '[.[0].messages[] | select((.tokens.total // 0) > 0)] | length'
count gemini-cli images '[.[0].messages[].content | arrays | .[] | select(.inlineData!=null)] | length'
count gemini-cli compactions '0'
count gemini-cli subagents '0'

count cline typed '[.[0].messages[] | select(.role=="user") | .content | if type=="string" then . else (.[] | select(.type=="text") | .text) end | select(startswith("<SYSTEM_NOTICE>") | not)] | length'
count cline messages '[.[0].messages[] | select(.role=="assistant") | .id] | unique | length'
count cline texts '[.[0].messages[] | select(.role=="assistant") | .content[] | select(.type=="text" and .text!="")] | length'
count cline calls '[.[0].messages[].content[] | select(.type=="tool_use")] | length'
count cline results '[.[0].messages[].content[] | select(.type=="tool_result")] | length'
count cline errors '[.[0].messages[].content[] | select(.type=="tool_result" and .is_error==true)] | length'
count cline usage '[.[0].messages[] | select(.metrics!=null)] | length'
count cline images '[.[0].messages[].content[] | (select(.type=="image")), (select(.type=="tool_result") | .content | arrays | .[] | select(.type=="image"))] | length'
count cline compactions '[.[0].messages[] | select(.metadata.kind=="compaction")] | length'
count cline subagents '0'

count mini-swe-agent typed '[.[0].messages | to_entries[] | select(.value.role=="user" and .key < 2)] | length'
count mini-swe-agent messages '[.[0].messages[] | select(.role=="assistant")] | length'
count mini-swe-agent texts '[.[0].messages[] | select(.role=="assistant" and .content!="")] | length'
count mini-swe-agent calls '[.[0].messages[] | select(.role=="assistant" and ([.content | scan("```bash\\s*\\n[\\s\\S]*?\\n```")] | length)==1)] | length'
count mini-swe-agent results '.[0].messages as $m | [range(1; $m | length) | select($m[.].role=="user" and $m[. - 1].role=="assistant" and ([$m[. - 1].content | scan("```bash\\s*\\n[\\s\\S]*?\\n```")] | length)==1)] | length'
count mini-swe-agent errors '[.[0].messages[] | select(.role=="user" and (.content | test("^\\s*<returncode>-?[1-9][0-9]*</returncode>")))] | length'
count mini-swe-agent usage '[.[0].messages[] | .extra.response.usage? | objects] | length'
count mini-swe-agent images '0'
count mini-swe-agent compactions '0'
count mini-swe-agent subagents '0'

count swe-agent typed '[.[0].history[] | select(.role=="user" and .is_demo!=true)] | .[0:1] | length'
count swe-agent messages '[.[0].history[] | select(.role=="assistant")] | length'
count swe-agent texts '[.[0].history[] | select(.role=="assistant" and .content!="")] | length'
count swe-agent calls '[.[0].history[] | select(.role=="assistant") | if .tool_calls then .tool_calls[] else (select((.action // "")!="")) end] | length'
count swe-agent results 'if ([.[0].history[] | select(.role=="tool")] | length) > 0 then [.[0].history[] | select(.role=="tool") | .tool_call_ids[]] | length else [.[0].trajectory[]] | length end'
count swe-agent errors '0'
count swe-agent usage '0'
count swe-agent images '0'
count swe-agent compactions '0'
count swe-agent subagents '0'

count openhands typed '[(if (.[0] | type)=="array" then .[0][] else (.[] | if .history then .history[] else . end) end) | select(.source=="user" and .action=="message"), select(.kind=="MessageEvent" and .source=="user")] | length'
count openhands messages '[(if (.[0] | type)=="array" then .[0][] else (.[] | if .history then .history[] else . end) end) | (select(.action!=null) | .tool_call_metadata.model_response.id // empty), (select(.kind=="ActionEvent") | .llm_response_id)] | unique | length'
count openhands texts '[(if (.[0] | type)=="array" then .[0][] else (.[] | if .history then .history[] else . end) end) | (select(.action!=null) | .tool_call_metadata.model_response.choices[0].message.content? // empty | select(.!="")), (select(.kind=="ActionEvent") | .thought[] | select(.type=="text" and .text!=""))] | length'
count openhands calls '[(if (.[0] | type)=="array" then .[0][] else (.[] | if .history then .history[] else . end) end) | select((.action!=null and .tool_call_metadata!=null) or .kind=="ActionEvent")] | length'
count openhands results '[(if (.[0] | type)=="array" then .[0][] else (.[] | if .history then .history[] else . end) end) | select((.observation!=null and .tool_call_metadata!=null) or .kind=="ObservationEvent")] | length'
count openhands errors '[(if (.[0] | type)=="array" then .[0][] else (.[] | if .history then .history[] else . end) end) | select((.tool_call_metadata!=null and .success==false) or (.kind=="ObservationEvent" and .observation.is_error==true))] | length'
count openhands usage '[(if (.[0] | type)=="array" then .[0][] else (.[] | if .history then .history[] else . end) end) | select(.action!=null) | .tool_call_metadata.model_response | objects | select(.usage!=null) | .id] | unique | length'
count openhands images '[(if (.[0] | type)=="array" then .[0][] else (.[] | if .history then .history[] else . end) end) | (.args.image_urls? | arrays | .[]), (.observation | objects | .content | arrays | .[] | select(.type=="image"))] | length'
count openhands compactions '[(if (.[0] | type)=="array" then .[0][] else (.[] | if .history then .history[] else . end) end) | select(.kind=="Condensation" or .action=="condensation")] | length'
count openhands subagents '0'

count deepseek-harness typed 'if .[0].parentSession then 0 else [.[] | select(.type=="user/message" and .data.source.kind=="user") | .data.content[] | select(.type=="text")] | length end'
count deepseek-harness messages '[.[] | select(.type=="assistant/message")] | length'
count deepseek-harness texts '[.[] | select(.type=="assistant/message") | (.data.message.content // .data.content)[] | select(.type=="text" and .text!="")] | length'
count deepseek-harness calls '[.[] | select(.type=="assistant/message") | (.data.message.content // .data.content)[] | select(.type=="tool-call")] | length'
count deepseek-harness results '[.[] | select(.type=="tool/result")] | length'
count deepseek-harness errors '[.[] | select(.type=="tool/result") | select(.data.isError==true or any(.data.message.content[]?; .isError==true))] | length'
count deepseek-harness usage '[.[] | select(.type=="assistant/message" and .data.usage!=null)] | length'
count deepseek-harness images '[.[] | select(.type=="user/message" or .type=="tool/result") | (.data.message.content // .data.content)[] | .., .content? | objects | select(.type=="image")] | length'
count deepseek-harness compactions '[.[] | select(.type=="compaction/summary")] | length'
count deepseek-harness subagents '[.[] | select(.type=="session" and .parentSession!=null)] | length'

count tau-bench typed '[.[0].ticks[]?.user_chunk | select((.content // "")!="")] | length'
count tau-bench messages '[.[0].ticks[]?.agent_chunk | select((.content // "")!="" or .tool_calls!=null)] | length'
count tau-bench texts '[.[0].ticks[]?.agent_chunk | select((.content // "")!="")] | length'
count tau-bench calls '[.[0].ticks[]? | .agent_chunk.tool_calls[]?, .agent_tool_calls[]?] | length'
count tau-bench results '[.[0].ticks[]? | .agent_tool_results[]?] | length'
count tau-bench errors '[.[0].ticks[]? | .agent_tool_results[]? | select(.error==true)] | length'
count tau-bench usage '[.[0].ticks[]?.agent_chunk | select(.usage!=null)] | length'
count tau-bench images '0'
count tau-bench compactions '0'
count tau-bench subagents '0'

format() {
  case $1 in
    tau2-bench/*) echo tau-bench ;;
    openhands/software-agent-sdk/*) echo openhands ;;
    *) echo "${1%%/*}" ;;
  esac
}

cd "$data"
files() {
  find . -type f -size +0 ! -path './tool-outputs/*' ! -path './LICENSES/*' ! -name MANIFEST.md \
    ! -name '*stdout.expected.jsonl' -printf '%P\n' | sort
}
{
  { if [ -n "$only" ]; then echo "$only"; else files; fi; } | while IFS= read -r f; do
    form=$(format "$f")
    jq -n --arg f "$f" --arg v "$form" '{files: {($f): {format: $v}}}'
    for n in "${names[@]}"; do
      v=$(jq -s "${prog[$form.$n]}" "$f")
      jq -n --arg f "$f" --arg n "$n" --argjson v "$v" '{files: {($f): {($n): $v}}}'
    done
  done
  [ -n "$only" ] || for key in $(printf '%s\n' "${!prog[@]}" | sort); do
    jq -n --arg f "${key%.*}" --arg n "${key##*.}" --arg p "${prog[$key]}" '{how: {($f): {($n): $p}}}'
  done
} | jq -s 'reduce .[] as $x ({}; . * $x)'
