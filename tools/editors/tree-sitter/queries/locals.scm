[(function) (model)] @local.scope

(let name: (identifier) @local.definition.variable)
(assignment name: (identifier) @local.definition.variable)
(stage name: (identifier) @local.definition.variable)
(for name: (identifier) @local.definition.variable)
(parameter name: (identifier) @local.definition.variable.parameter)
(identifier) @local.reference
