[(function) (model)] @local.scope

(let name: (identifier) @local.definition.var)
(assignment name: (identifier) @local.definition.var)
(stage name: (identifier) @local.definition.var)
(for name: (identifier) @local.definition.var)
(parameter name: (identifier) @local.definition.parameter)
(identifier) @local.reference
