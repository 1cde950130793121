
local tpp = Proto("tpp", "Tiny Packet Program")

local modes = { [0] = "stack", [1] = "hop" }
local sizes = { [0] = "16 bits", [1] = "32 bits" }
local fields = {
    version = ProtoField.uint8("tpp.version", "Version", base.DEC, nil, 0xf0),
    word = ProtoField.uint8("tpp.word", "Word", base.DEC, sizes, 0x08),
    mode = ProtoField.uint8("tpp.mode", "Mode", base.DEC, modes, 0x04),
    reflect = ProtoField.bool("tpp.reflect", "Reflect", 8, nil, 0x02),
    read_only = ProtoField.bool("tpp.read_only", "No writes", 8, nil, 0x01),
    done = ProtoField.bool("tpp.done", "Done", 8, nil, 0x80),
    absent = ProtoField.bool("tpp.absent", "Absent", 8, nil, 0x40),
    suppressed = ProtoField.bool("tpp.suppressed", "Suppressed", 8, nil, 0x20),
    full = ProtoField.bool("tpp.full", "Full", 8, nil, 0x10),
    length = ProtoField.uint16("tpp.length", "Length"),
    memory_length = ProtoField.uint16("tpp.memory_length", "Memory length"),
    hop = ProtoField.int8("tpp.hop", "Hop number"),
    sp = ProtoField.uint16("tpp.sp", "Stack pointer"),
    hop_length = ProtoField.uint16("tpp.hop_length", "Per-hop length"),
    checksum = ProtoField.uint16("tpp.checksum", "Checksum", base.HEX),
    checksum_good = ProtoField.bool("tpp.checksum_good", "Checksum is correct"),
    encapsulated = ProtoField.uint16("tpp.encapsulated", "Encapsulated protocol", base.HEX),
    application = ProtoField.uint16("tpp.application", "Application"),
    instruction = ProtoField.string("tpp.instruction", "Instruction"),
    value = ProtoField.uint32("tpp.value", "Word"),
    name = ProtoField.string("tpp.name", "Name"),
}
tpp.fields = fields

local function name_of(address)
    local location = address - address % 2
    local suffix = ""
    if location ~= address then suffix = ".High" end
    local name = names[location]
    if name == nil then
        for first, namespace in pairs(staged) do
            if location >= first and location < first + 0x1000 then
                local offset = location - first
                local statistic = namespace.rows[offset % stride]
                if statistic ~= nil then
                    name = namespace.name .. math.floor(offset / stride) .. ":" .. statistic
                end
            end
        end
    end
    if name == nil then return string.format("%#06x", address) end
    return name .. suffix
end

local function one_complement_sum(range)
    local sum = 0
    for at = 0, range:len() - 2, 2 do
        sum = sum + range(at, 2):uint()
    end
    while sum > 0xffff do
        sum = sum % 0x10000 + math.floor(sum / 0x10000)
    end
    return sum
end

function tpp.dissector(buffer, pinfo, tree)
    if buffer:len() < 12 or buffer(0, 1):bitfield(0, 4) ~= 1 then return 0 end
    local length, memory_length = buffer(2, 1):uint() * 2, buffer(3, 1):uint() * 2
    local code = length - memory_length - 12
    if code < 0 or code % 4 ~= 0 or code > 20 or length > buffer:len() then return 0 end
    local wide, is_hop = buffer(0, 1):bitfield(4, 1) == 1, buffer(0, 1):bitfield(5, 1) == 1
    local word = wide and 4 or 2
    local application, hop = buffer(10, 2):uint(), buffer(4, 1):int()
    local top = tree:add(tpp, buffer(0, length), "Tiny Packet Program, application " .. application .. ", hop " .. hop)
    for _, field in ipairs({ "version", "word", "mode", "reflect", "read_only" }) do
        top:add(fields[field], buffer(0, 1))
    end
    for _, field in ipairs({ "done", "absent", "suppressed", "full" }) do
        top:add(fields[field], buffer(1, 1))
    end
    top:add(fields.length, buffer(2, 1), length)
    top:add(fields.memory_length, buffer(3, 1), memory_length)
    top:add(fields.hop, buffer(4, 1))
    local pointer = buffer(5, 1):uint() * 2
    if is_hop then
        top:add(fields.hop_length, buffer(5, 1), pointer)
    else
        top:add(fields.sp, buffer(5, 1), pointer)
    end
    top:add(fields.checksum, buffer(6, 2))
    top:add(fields.checksum_good, buffer(6, 2), one_complement_sum(buffer(0, length)) == 0xffff)
    top:add(fields.encapsulated, buffer(8, 2))
    top:add(fields.application, buffer(10, 2))

    local pushed, loaded = {}, {}
    for at = 12, 12 + code - 4, 4 do
        local bits = buffer(at, 4)
        local operation, address = operations[bits:bitfield(0, 4)] or "?", bits:bitfield(4, 16)
        local first, second = bits:bitfield(20, 6), bits:bitfield(26, 6)
        local text = operation .. " [" .. name_of(address) .. "]"
        if operation == "LOADI" then
            text = "LOADI [[" .. second .. "]], [" .. first .. "]"
            loaded[first] = "indirect"
        elseif operation == "CEXEC" then
            text = text .. ", " .. (first == 63 and "all bits" or "[" .. first .. "]") .. ", [" .. second .. "]"
        elseif operation == "CSTORE" then
            text = text .. ", [" .. first .. "], [" .. second .. "]"
        elseif operation == "PUSH" then
            pushed[#pushed + 1] = name_of(address)
        elseif operation ~= "POP" then
            text = text .. ", [" .. first .. "]"
            if operation ~= "STORE" then loaded[first] = name_of(address) end
        end
        top:add(fields.instruction, bits, text)
    end

    local memory = length - memory_length
    local block = memory_length
    if is_hop and pointer > 0 then block = pointer end
    -- The first pushed word, if every switch so far has pushed all.
    local bottom = pointer - hop * #pushed * word
    for at = 0, memory_length - word, word do
        local range, name, number = buffer(memory + at, word), nil, nil
        if is_hop then
            local offset = at % block
            number = math.floor(at / block)
            name = loaded[math.floor(offset / word)] or pushed[math.floor(offset / word) + 1]
        elseif #pushed > 0 and at >= bottom and bottom >= 0 then
            local index = math.floor((at - bottom) / word)
            number, name = math.floor(index / #pushed), pushed[index % #pushed + 1]
        end
        local item = top:add(fields.value, range)
        if name ~= nil then
            item:add(fields.name, range, "hop " .. number .. " " .. name)
            item:append_text(" (hop " .. number .. " " .. name .. ")")
        end
    end

    pinfo.cols.protocol:prepend("TPP/")
    local encapsulated = buffer(8, 2):uint()
    if encapsulated ~= 0 and length < buffer:len() then
        DissectorTable.get("ethertype"):try(encapsulated, buffer(length):tvb(), pinfo, tree)
    end
    return buffer:len()
end

DissectorTable.get("ethertype"):add(0x6666, tpp)
DissectorTable.get("udp.port"):add(0x6666, tpp)
